import type { OpenAPIObject } from '@nestjs/swagger';
import { FEED_TYPES } from '../../../src/feed/feed-types.js';

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
  const rows = own.map(({ name, type, labelNames, help }) => {
    const labels = labelNames.length > 0 ? `, by ${labelNames.map((label) => `\`${label}\``).join(', ')}` : '';
    return `- \`${name}\` (${type}${labels}): ${help}`;
  });
  return `# Metrics

\`GET /metrics\` of every process, in the text format of Prometheus, with a key that has the scope \`operations\`. A process
shows what its \`ROLES\` run. What a gauge reads from PostgreSQL is the same in each process: take its maximum. Counters and
histograms are of one process: take their sum. Labels hold words of the program, never ids. In addition, there are the default
metrics of prom-client (\`process_*\`, \`nodejs_*\`).

${rows.join('\n')}
`;
}

/** docs/reference/events.md: the events of the change feed. */
export function eventsPage(): string {
  return `# Events of the change feed

\`GET /v1/events\` lists, in order, what changed for people, sessions, jobs and imports, and each event of the platform's
webhooks. An event is \`{cursor, type, at, subject, data}\`: \`subject\` is a path below \`/v1\` that shows the current state,
\`data\` holds ids and codes. An event that the platform repeats may appear again.

${Object.entries(FEED_TYPES)
  .map(([type, text]) => `- \`${type}\`: ${text}`)
  .join('\n')}
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
      .map(({ method, path, summary, deprecated, 'x-scopes': scopes = [] }) => {
        const needs = scopes.length > 0 ? ` (${scopes.map((scope) => `\`${scope}\``).join(', ')})` : '';
        return `- \`${method.toUpperCase()} ${path}\`${needs}: ${summary}${deprecated ? ', deprecated' : ''}`;
      });
    return `## ${tag}\n\n${rows.join('\n')}\n`;
  });
  return `# Operations

Every operation of the HTTP API, with the scopes that its key needs. Fields and answers stand at \`/docs\` of a running
service, and as OpenAPI at \`/openapi.json\`.

${parts.join('\n')}`;
}
