import { randomBytes } from 'node:crypto';
import { SCOPES, type Scope } from '../../src/access/identity/scope.js';
import { ADMIN_KEY } from '../support/app.js';
import { ROWS, type Row } from './operations.js';
import { useAccess } from './use-access.js';

const { world, ask, makeKey } = useAccess();

type Verdict = 'granted' | `${401 | 403 | 400} ${string}`;

/** The problems of a caller without access. After any other answer, access was granted. */
const REFUSALS = [
  ...['unauthenticated', 'signed-out', 'forbidden-scope', 'forged-request', 'step-up-required', 'purpose-required'],
];

interface Shown {
  key?: string;
  cookie?: string;
  headers?: Record<string, string>;
}

let requests = 0;

async function verdictOf({ operation, isRead, isPublic }: Row, shown: Shown, expected: Verdict): Promise<Verdict> {
  requests += 1;
  const { status, problem } = await ask(operation.replace(/\{\w+\}/g, 'x'), {
    key: shown.key ?? null,
    // A refused request is answered before its body is read.
    ...(!isRead && (isPublic || !expected.startsWith('401')) && { body: {} }),
    headers: {
      // Requests without a valid key are limited for each source.
      'x-forwarded-for': `10.0.${requests >> 8}.${requests & 255}`,
      ...(shown.cookie !== undefined && { cookie: shown.cookie }),
      ...shown.headers,
    },
  });
  if (status >= 500) expect([operation, problem]).toEqual([operation, 'not-configured']);
  return REFUSALS.includes(problem ?? '') ? (`${status} ${problem}` as Verdict) : 'granted';
}

/** Keys by name. */
let keys: Map<string, Promise<string>>;
beforeEach(() => {
  keys = new Map();
});

function keyFor(name: string, make: () => Promise<string>): Promise<string> {
  const key = keys.get(name) ?? make();
  keys.set(name, key);
  return key;
}

const validKey = (row: Row, scopes: readonly Scope[] = row.scopes) => {
  const given: readonly Scope[] = scopes.length > 0 ? scopes : ['imports'];
  return keyFor(`valid ${given}`, async () => (await makeKey(given)).key);
};
const wrongKey = (name: string, spoil: (id: string) => Promise<unknown>) =>
  keyFor(name, async () => {
    const { id, key } = await makeKey(SCOPES);
    await spoil(id);
    return key;
  });
const set = (assignment: string) => (id: string) => world.sql(`UPDATE api_keys SET ${assignment} WHERE id = $1`, [id]);

interface Session {
  cookie: string;
  token: string;
}

/** A new session for each use, because an operation may end it. */
async function sessionOf(key: string): Promise<Session> {
  const { status, headers, body } = await ask<{ csrfToken: string }>('POST /v1/browser-session', { key });
  expect(status).toBe(201);
  return { cookie: headers.get('set-cookie')?.split(';')[0] ?? '', token: body.csrfToken };
}

const PURPOSE = { 'notebridge-purpose': 'TICKET-1042' };
const csrf = ({ cookie, token }: Session, headers: object = {}): Shown => ({
  cookie,
  headers: { 'x-csrf-token': token, 'sec-fetch-site': 'same-origin', ...headers },
});
const lacking = (scope: Scope) => SCOPES.filter((other) => other !== scope);

const UNAUTHENTICATED = () => '401 unauthenticated' as const;
const FORGED = () => '403 forged-request' as const;

/** The credentials of a caller, and the expected verdict. */
const CREDENTIALS: [name: string, shown: (row: Row) => Promise<Shown>, verdict: (row: Row) => Verdict][] = [
  ['nothing', async () => ({}), UNAUTHENTICATED],
  ['a malformed key', async () => ({ headers: { authorization: 'Bearer a b' } }), UNAUTHENTICATED],
  ['an unknown key', async () => ({ key: `nb_${randomBytes(32).toString('base64url')}` }), UNAUTHENTICATED],
  [
    'a revoked key',
    async () => ({ key: await wrongKey('revoked', (id) => ask(`DELETE /v1/api-keys/${id}`)) }),
    UNAUTHENTICATED,
  ],
  [
    'a revoked key that was revived in the database',
    async () => ({
      key: await wrongKey('revived', async (id) => {
        await ask(`DELETE /v1/api-keys/${id}`);
        await set('revoked_at = NULL')(id);
      }),
    }),
    UNAUTHENTICATED,
  ],
  [
    'a key that was widened in the database',
    async () => ({ key: await wrongKey('widened', set(`scopes = scopes || '{admin}'`)) }),
    UNAUTHENTICATED,
  ],
  ['a key with exactly the scopes', async (row) => ({ key: await validKey(row) }), () => 'granted'],
  [
    'a session without its CSRF token',
    async (row) => ({ cookie: (await sessionOf(await validKey(row))).cookie, headers: PURPOSE }),
    ({ isRead }) => (isRead ? 'granted' : FORGED()),
  ],
  [
    'a session with its CSRF token',
    async (row) => csrf(await sessionOf(await validKey(row))),
    ({ needsStepUp }) => (needsStepUp ? '400 purpose-required' : 'granted'),
  ],
  [
    'a session with its CSRF token and a reason',
    async (row) => csrf(await sessionOf(await validKey(row)), PURPOSE),
    () => 'granted',
  ],
  [
    'a session, from a page of another site',
    async (row) => csrf(await sessionOf(await validKey(row)), { 'sec-fetch-site': 'cross-site' }),
    FORGED,
  ],
  [
    'a session, from a page of a neighbouring host',
    async (row) => csrf(await sessionOf(await validKey(row)), { 'sec-fetch-site': 'same-site' }),
    FORGED,
  ],
  [
    'a session and an unknown key',
    async (row) => ({
      ...csrf(await sessionOf(await validKey(row))),
      key: `nb_${randomBytes(32).toString('base64url')}`,
    }),
    UNAUTHENTICATED,
  ],
  [
    'a key and a session without its CSRF token',
    async (row) => ({ cookie: (await sessionOf(await validKey(row))).cookie, key: await validKey(row) }),
    () => 'granted',
  ],
  [
    'an ended session',
    async (row) => {
      const session = csrf(await sessionOf(await validKey(row)));
      expect(
        (
          await ask('DELETE /v1/browser-session', {
            key: null,
            headers: { ...session.headers, cookie: session.cookie ?? '' },
          })
        ).status,
      ).toBe(204);
      return session;
    },
    () => '401 signed-out',
  ],
];

/** The callers of a table whose access differs from the expected verdict. */
async function differences(credentials: typeof CREDENTIALS, rows = ROWS): Promise<string[]> {
  const wrong: string[] = [];
  for (const row of rows) {
    await Promise.all(
      credentials.map(async ([name, show, verdictFor]) => {
        const expected = row.isPublic ? 'granted' : verdictFor(row);
        const verdict = await verdictOf(row, await show(row), expected);
        if (verdict !== expected) wrong.push(`${row.operation} with ${name}: ${verdict} instead of ${expected}`);
      }),
    );
  }
  return wrong;
}

test('the table names every operation, with the scopes that OpenAPI says', async () => {
  interface Operation {
    description?: string;
    security?: unknown[];
    'x-scopes'?: Scope[];
  }
  const { paths } = (await ask<{ paths: Record<string, Record<string, Operation>> }>('GET /openapi.json')).body;
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
  );
  const documented = described.map(([operation, { security, 'x-scopes': scopes }]) => [
    operation,
    security ? null : scopes,
  ]);
  const expected = ROWS.map(({ operation, isPublic, scopes }) => [operation, isPublic ? null : scopes]);
  expect(documented.sort()).toEqual(expected.sort());
  for (const [, { description, 'x-scopes': scopes = [] }] of described)
    for (const scope of scopes) expect(description).toContain(`\`${scope}\``);
});

test.each(CREDENTIALS.map(([name, ...rest]) => [name, [name, ...rest]] as const))(
  'with %s, every operation answers as the table says',
  async (_, credential) => {
    expect(await differences([credential as (typeof CREDENTIALS)[number]])).toEqual([]);
  },
);

test('every operation rejects a key and a session that lack one of its scopes', async () => {
  const wrong: string[] = [];
  for (const scope of SCOPES) {
    const rows = ROWS.filter(({ scopes }) => scopes.includes(scope));
    const forbidden = () => '403 forbidden-scope' as const;
    wrong.push(
      ...(await differences(
        [
          [`a key without ${scope}`, async (row) => ({ key: await validKey(row, lacking(scope)) }), forbidden],
          [
            `a session without ${scope}`,
            async (row) => csrf(await sessionOf(await validKey(row, lacking(scope))), PURPOSE),
            forbidden,
          ],
        ],
        rows,
      )),
    );
  }
  expect(wrong).toEqual([]);
});

test('every operation rejects an expired key', async () => {
  const expiresAt = new Date(world.now().getTime() + 60_000).toISOString();
  const { key } = await makeKey(SCOPES, { expiresAt });
  await world.advance('1 min');
  const credential: (typeof CREDENTIALS)[number] = ['an expired key', async () => ({ key }), UNAUTHENTICATED];
  expect(await differences([credential])).toEqual([]);
});

test('only operations that need a step-up reject a session that signed in six minutes ago', async () => {
  const sessions = new Map<Row, Session>();
  for (const row of ROWS.filter(({ needsStepUp }) => needsStepUp))
    sessions.set(row, await sessionOf(await validKey(row)));
  const others = await sessionOf(ADMIN_KEY);
  await world.advance('6 min');
  const credential: (typeof CREDENTIALS)[number] = [
    'an older session',
    async (row) => csrf(sessions.get(row) ?? others, PURPOSE),
    ({ needsStepUp }) => (needsStepUp ? '403 step-up-required' : 'granted'),
  ];
  // The other operations would end the session.
  const rows = ROWS.filter(({ operation }) => !operation.includes('/browser-session'));
  expect(await differences([credential], rows)).toEqual([]);
});
