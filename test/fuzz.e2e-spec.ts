import { runScenario } from '../faults/run-scenario.js';
import { hostileRequests } from '../faults/scenarios/hostile-requests.js';
import { freshDatabase } from './support/databases.js';

/** 2,000 requests: `npm run faults -- --only requests --share 1` sends 20,000. */
const SHARE = 0.1;
const SEED = Number(process.env.SEED);

test(`every law holds under ${hostileRequests.says} (SEED=${SEED})`, async () => {
  const database = await freshDatabase();
  const said: string[] = [];
  const log = (line: string) => said.push(line);
  const { broken } = await runScenario(hostileRequests, { seed: SEED, share: SHARE, databaseUrl: database.url, log });
  await database.drop();
  expect({ broken, said: broken.length > 0 ? said : [] }).toEqual({ broken: [], said: [] });
});
