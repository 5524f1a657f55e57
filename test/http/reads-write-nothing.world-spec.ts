import { SCOPES } from '../../src/access/identity/scope.js';
import { useStoredRows } from '../support/stored-rows.js';
import { useWorld } from '../world/use-world.js';

/** What a read may write: its audit entry. */
const AUDIT = ['audit_entries', 'audit_subjects', 'audit_ranges', 'audit_unlinked'];

/** Columns that a read may change: the last use of its key or console session. */
const LAST_USE: Record<string, string> = { api_keys: 'last_used_at', browser_sessions: 'last_seen_at' };

/** What else a route may change: a recording's address is asked of the platform, a call that is logged and may pause others. */
const CALLS: Record<string, string[]> = {
  '/v1/sessions/{id}/recording-url': ['platform_calls', 'platform_pauses'],
};

/** Values for parameters without a list of values. Others are sent as `x`. */
const VALUES: Record<string, string> = {
  ...{ after: 'latest', appointment: 'visit-1', client: 'c-1', date: 'ge2026-01-01', limit: '1' },
  ...{ 'patient.identifier': 'c-1', provider: 'p-1', subject: 'clients/c-1', updatedSince: '2026-01-01T00:00:00Z' },
  ...{ _count: '1', _lastUpdated: 'ge2026-01-01' },
};

interface Parameter {
  in?: string;
  name: string;
  schema?: { enum?: string[]; items?: { enum?: string[] } };
}

interface Operation {
  parameters?: Parameter[];
  responses: Record<string, { content?: Record<string, unknown> }>;
}

type Headers = Record<string, string>;

/** A request of a route: its query and headers. */
interface Variant {
  query: string;
  headers?: Headers;
}

const world = useWorld({ settings: { PLATFORM_PARTNER_DOMAIN: 'https://recorder.example.org' } });
const rows = useStoredRows(world);

/** The GET operations that `/openapi.json` describes, and those beside it. */
async function reads(): Promise<[path: string, operation: Operation][]> {
  const { paths } = (await world.call<{ paths: Record<string, { get?: Operation }> }>('GET', '/openapi.json')).body;
  const beside = ['/', '/openapi.json', '/contract.schema.json', '/docs', '/console'];
  return [
    ...Object.entries(paths).flatMap(([path, { get }]): [string, Operation][] => (get ? [[path, get]] : [])),
    ...beside.map((path): [string, Operation] => [path, { responses: {} }]),
  ];
}

/** A request without parameters, one for each of them, each media type, and each with long poll if the route has it. */
function variantsOf({ parameters = [], responses }: Operation): Variant[] {
  const queries = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, schema }) => {
      const [value = VALUES[name] ?? 'x'] = schema?.enum ?? schema?.items?.enum ?? [];
      return `?${new URLSearchParams({ [name]: value })}`;
    });
  const types = Object.keys(responses['200']?.content ?? {});
  const plain = [
    ...['', ...queries].map((query) => ({ query })),
    ...types.map((accept) => ({ query: '', headers: { accept } })),
  ];
  if (!parameters.some(({ name }) => name === 'Prefer')) return plain;
  const prefer = 'wait=1, handling=strict';
  return [...plain, ...['', ...queries].map((query) => ({ query, headers: { prefer } }))];
}

/** A digest of each table, with the transactions that wrote its rows, so that an update without a change shows, too. */
async function digests(): Promise<Map<string, string>> {
  const tables = await world.sql<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_class c
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> ALL ($1) ORDER BY 1`,
    [AUDIT],
  );
  const each = tables.map(({ name }) => {
    const row = name in LAST_USE ? `(to_jsonb(t) - '${LAST_USE[name]}')::text` : `t.xmin || ' ' || t::text`;
    return `SELECT '${name}' AS name, md5(string_agg(${row}, E'\\n' ORDER BY t::text)) AS digest FROM ${name} t`;
  });
  const found = await world.sql<{ name: string; digest: string }>(each.join(' UNION ALL '));
  return new Map(found.map(({ name, digest }) => [name, digest]));
}

/** Leaves an event as a process that was killed after its commit does. */
const leaveUnnumbered = () =>
  world.sql(`INSERT INTO feed_events (type, subject, data) VALUES ('person.synced', 'clients/c-1', '{}')`);

/**
 * Sends every GET, without moving time, so that nothing else works.
 *
 * @returns the tables that changed, by route; statuses of refused requests without parameters
 */
async function writesOf(credentials: Headers) {
  const writes = new Set<string>();
  const refused = new Set<string>();
  const all = await reads();
  await world.settle();
  for (const [route, operation] of all) {
    await leaveUnnumbered();
    let before = await digests();
    const path = route.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(rows.idOf(route, name)));
    for (const { query, headers } of variantsOf(operation)) {
      const answer = await fetch(world.url + path + query, { headers: { ...credentials, ...headers } });
      await answer.arrayBuffer();
      const { status } = answer;
      if (status >= (query === '' ? 400 : 500)) refused.add(`${status} ${route}${query}`);
      const after = await digests();
      for (const [table, digest] of after)
        if (digest !== before.get(table) && !CALLS[route]?.includes(table)) writes.add(`GET ${route}: ${table}`);
      before = after;
    }
  }
  return { routes: all.length, writes: [...writes], refused: [...refused] };
}

async function newKey(): Promise<string> {
  const body = { name: 'reader', scopes: SCOPES };
  return (await world.call<{ key: string }>('POST', '/v1/api-keys', { body })).body.key;
}

test.each([
  [
    'an API key',
    async (): Promise<Headers> => ({ authorization: `Bearer ${await newKey()}` }),
    ['404 /v1/browser-session'],
  ],
  [
    'a console session',
    async (): Promise<Headers> => {
      const { headers } = await world.call('POST', '/v1/browser-session', { key: await newKey() });
      return { cookie: headers.get('set-cookie')?.split(';')[0] ?? '', 'notebridge-purpose': 'TEST' };
    },
    [],
  ],
])(
  'no GET by %s writes anything but its audit entry, the last use, and the log of calls',
  async (_, signIn, absent) => {
    const { routes, writes, refused } = await writesOf(await signIn());
    expect(routes).toBeGreaterThan(45);
    expect({ refused, writes }).toEqual({ refused: absent, writes: [] });
  },
);
