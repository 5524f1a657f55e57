import { BrowserSessions } from '../../src/access/sign-in/browser-sessions.js';
import { Clock } from '../../src/config/clock.js';
import { useAccess } from './use-access.js';

const { world, ask, makeKey } = useAccess();

const KEY_DAILY_BYTES = '40 KiB';
const scopes = ['people:read', 'people:write', 'imports'] as const;
const provider = { email: 'roe@example.org', firstName: 'Jane', lastName: 'Roe'.padEnd(40, 'e') };

/** Sends changes until one is refused. @returns how many were accepted */
async function useLimit(key: string, on: { url: string }): Promise<number> {
  for (let accepted = 0; accepted < 1_000; accepted += 1) {
    const { status } = await ask(`PUT /v1/providers/P-${accepted}`, {
      ...{ key, on, body: { ...provider, email: `roe${accepted}@example.org` } },
    });
    if (status === 429) return accepted;
  }
  throw new Error('No change was refused.');
}

/** The length of an answer to a new key, and the bytes that its request stored. */
async function storedBy(line: string, options: object = {}): Promise<{ answer: number; bytes: number }> {
  const { id, key } = await makeKey(scopes);
  const { text } = await ask(line, { key, ...options });
  await world.advance('5 s');
  await world.settle();
  const [row] = await world.sql<{ bytes: number }>(`SELECT bytes::int FROM daily_bytes WHERE caller = '${id}'`);
  return { answer: text.length, bytes: row?.bytes ?? 0 };
}

/** Uploads providers with a new key. */
function upload(lastNames: readonly string[], more: Record<string, string> = {}) {
  const lines = lastNames.map((lastName, row) => `P-${row},Jane,${lastName},roe${row}@example.org`);
  const body = ['externalId,firstName,lastName,email', ...lines].join('\n');
  return storedBy('POST /v1/imports?kind=providers', { body, headers: { 'content-type': 'text/csv', ...more } });
}

describe('the bytes that a key stores in a day', () => {
  it('have a limit for all processes, until midnight (UTC)', async () => {
    const [first, second] = [
      await world.startAnother({ KEY_DAILY_BYTES }),
      await world.startAnother({ KEY_DAILY_BYTES }),
    ];
    const [{ key }, other] = [await makeKey(scopes), await makeKey(scopes)];
    expect(await useLimit(key, first)).toBeGreaterThan(10);
    const refused = await ask('GET /v1/providers', { key, on: first });
    expect(refused).toMatchObject({ status: 429, problem: 'daily-bytes-used' });
    const midnight = new Date(world.get(Clock).now());
    midnight.setUTCHours(24, 0, 0, 0);
    const seconds = Number(refused.headers.get('retry-after'));
    expect(Math.abs(seconds - (midnight.getTime() - world.get(Clock).now().getTime()) / 1_000)).toBeLessThan(2);
    expect((await ask('GET /v1/providers', { key: other.key, on: first })).status).toBe(200);
    await world.advance('5 s');
    await world.settle();
    await ask('GET /v1/providers', { key, on: second });
    await world.advance('5 s');
    await world.settle();
    expect((await ask('GET /v1/providers', { key, on: second })).status).toBe(429);
    await world.advance(`${seconds} s`);
    expect((await ask('GET /v1/providers', { key, on: first })).status).toBe(200);
  });

  it('are no others: not those of a person whose id is the id of the key', async () => {
    const on = await world.startAnother({ KEY_DAILY_BYTES });
    const { key, id } = await makeKey(scopes);
    await useLimit(key, on);
    const by = { id, issuer: 'https://id.example.org', name: 'Pat Doe', scopes: new Set(scopes) };
    const cookie = `__Host-notebridge_session=${await world.get(BrowserSessions).open({ by })}`;
    expect((await ask('GET /v1/providers', { key, on })).status).toBe(429);
    expect((await ask('GET /v1/providers', { key: null, headers: { cookie }, on })).status).toBe(200);
  });

  it('may be as many again for deletions', async () => {
    const on = await world.startAnother({ KEY_DAILY_BYTES });
    const { key } = await makeKey(scopes);
    await useLimit(key, on);
    expect((await ask('DELETE /v1/providers/P-1', { key, on })).status).toBeLessThan(300);
    const statuses: number[] = [];
    while (statuses.at(-1) !== 429 && statuses.length < 1_000)
      statuses.push((await ask('DELETE /v1/providers/P-1', { key, on })).status);
    expect(statuses.at(-1)).toBe(429);
  });

  it('include the answers that are kept for an Idempotency-Key', async () => {
    const [plain, kept] = [await upload(['Roe']), await upload(['Roe'], { 'idempotency-key': 'one' })];
    expect(kept.bytes - plain.bytes).toBeGreaterThan(plain.answer);
  });

  it('include the encrypted values of the rows of an import', async () => {
    const rows = 100;
    const lists = ['R', 'R'.repeat(50)].map((lastName) => Array<string>(rows).fill(lastName));
    const [short, long] = [await upload(lists[0] ?? []), await upload(lists[1] ?? [])];
    expect(long.bytes - short.bytes).toBe(49 * rows);
  });

  it('include the body, and the audit entry with what it names', async () => {
    const put = async (lastName: string) =>
      (await storedBy('PUT /v1/providers/P-1', { body: { ...provider, lastName } })).bytes;
    expect((await put('Roe'.padEnd(100, 'e'))) - (await put('Roe'))).toBe(97);
    const [clients, providers] = [await storedBy('GET /v1/clients'), await storedBy('GET /v1/providers')];
    expect(providers.bytes).toBeGreaterThan(clients.bytes);
  });

  it.each([
    ['rows', 'import_rows', 'externalId,firstName,lastName,email,providers'],
    ['unmapped records', 'import_records', 'ID,First Name,Last Name,MRN,Provider'],
  ])('count the %s of an import, which leaves nothing if it exceeds the limit', async (_, table, header) => {
    const on = await world.startAnother({ KEY_DAILY_BYTES });
    const { key } = await makeKey(scopes);
    const lines = Array.from({ length: 2_000 }, (_, row) => `C-${row},Ann,Ash,${row}@example.org,p-1`);
    const body = [header, ...lines].join('\n');
    const headers = { 'content-type': 'text/csv' };
    const refused = await ask('POST /v1/imports?kind=clients', { key, on, body, headers });
    expect(refused).toMatchObject({ status: 429, problem: 'daily-bytes-used' });
    expect(await world.sql(`SELECT count(*)::int AS rows FROM ${table}`)).toEqual([{ rows: 0 }]);
  });
});
