import { readFileSync, writeFileSync } from 'node:fs';
import { clientSchema } from '../../harness/client-schema.js';
import { Metrics } from '../../src/monitoring/metrics.js';
import { contractJsonSchema } from '../../src/platform/contract/contract-schema.js';
import { openApiDocument } from '../../src/setup.js';
import { contractPage } from '../support/reference/contract.js';
import { problemsPage } from '../support/reference/problems.js';
import { eventsPage, metricsPage, operationsPage } from '../support/reference/service-pages.js';
import { envExample, settingsPage } from '../support/reference/settings.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const description = () => openApiDocument(world.app);

const FILES: Record<string, () => string | Promise<string>> = {
  '.env.example': envExample,
  'docs/reference/settings.md': settingsPage,
  'docs/reference/contract.md': contractPage,
  'docs/reference/contract.schema.json': () => `${JSON.stringify(contractJsonSchema(), null, 2)}\n`,
  'docs/reference/problems.md': problemsPage,
  'docs/reference/events.md': eventsPage,
  'docs/reference/operations.md': () => operationsPage(description()),
  'docs/reference/metrics.md': () => metricsPage(world.get(Metrics).registry.getMetricsAsArray()),
  'client/schema.ts': () => clientSchema(description()),
};

test.each(Object.entries(FILES))('%s agrees with the code; npm run reference writes it', async (file, make) => {
  const text = await make();
  if (process.env.WRITE_REFERENCE) writeFileSync(file, text);
  const isEqual = readFileSync(file, 'utf8') === text; // the difference would be thousands of lines
  expect([file, isEqual]).toEqual([file, true]);
});
