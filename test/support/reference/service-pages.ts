import type { OpenAPIObject } from '@nestjs/swagger';
import { FEED_TYPES } from '../../../src/words/feed-types.js';
import { codes, table } from './table.js';

/** The parts of a metric that prom-client stores but does not declare. */
interface Declared {
  name: string;
  help: string;
  type: string;
  labelNames: readonly string[];
}

/** docs/reference/metrics.md. @param metrics all metrics of the service */
export function metricsPage(metrics: readonly unknown[]): string {
  const own = (metrics as Declared[])
    .filter(({ name }) => name.startsWith('notebridge_'))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const rows = own.map(({ name, type, labelNames, help }) => [codes([name]), type, codes(labelNames), help]);
  return `# Metrics

For the operator who builds dashboards and alerts. \`GET /metrics\` of every process answers in the text format of
Prometheus; the key needs the scope \`operations\`. A process shows the metrics of its \`ROLES\`. Gauges that are read from
PostgreSQL are the same in each process, so take their maximum. Counters and histograms belong to one process, so take
their sum. Values of labels are codes of notebridge, never ids. The default metrics of prom-client (\`process_*\`, \`nodejs_*\`) are
not listed.

${table(['metric', 'type', 'labels', 'meaning'], rows)}
`;
}

/** docs/reference/events.md: the events of the change feed. */
export function eventsPage(): string {
  return `# Events of the change feed

For the EHR's engineer. \`GET /v1/events\` lists, in order, each change of people, sessions, jobs and imports, and each
event of the platform's webhooks. An event is \`{cursor, type, at, subject, data}\`: \`subject\` is a path below \`/v1\` that
shows the current state, and \`data\` contains ids and codes. If the platform repeats an event, it may appear again.

An event is published in the moment from which on a GET shows what the last column says, unless the subject has changed
since. \`{id}\` is the id in its \`subject\`, other names in braces are fields of its \`data\`.

${table(
  ['event', 'meaning', 'what a GET shows'],
  Object.entries(FEED_TYPES).map(([type, { means, shows }]) => [codes([type]), means, shows]),
)}
`;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;

/** docs/reference/operations.md: the HTTP API at a glance. @param document its OpenAPI description */
export function operationsPage({ paths }: OpenAPIObject): string {
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method] as (typeof item)['get'] & { 'x-scopes'?: string[] };
      return operation ? [{ ...operation, path, method, tag: operation.tags?.[0] ?? 'others' }] : [];
    }),
  );
  const tags = [...new Set(operations.map(({ tag }) => tag))].sort();
  const parts = tags.map((tag) => {
    const rows = operations
      .filter((each) => each.tag === tag)
      .map(({ method, path, summary = '', deprecated, 'x-scopes': scopes = [] }) => [
        codes([`${method.toUpperCase()} ${path}`]),
        codes(scopes),
        `${summary}${deprecated ? ' (deprecated)' : ''}`,
      ]);
    return `## ${tag}\n\n${table(['operation', 'scopes', 'effect'], rows)}\n`;
  });
  return `# Operations

For everyone who calls the HTTP API: its operations, with the scopes that a key needs. A running service describes fields
and answers at \`/docs\`, and as OpenAPI at \`/openapi.json\`.

${parts.join('\n')}`;
}
