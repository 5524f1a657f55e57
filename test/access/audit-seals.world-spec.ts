import { verifyTrail } from '../../src/access/audit/verify-trail.js';
import { Vault } from '../../src/vault/vault.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const verify = (head?: string) =>
  verifyTrail(world.database.pool, (purpose, value) => world.get(Vault).fingerprint(purpose, value), head);

/** Makes two entries and seals them. */
async function sealedEntries(): Promise<void> {
  await world.call('GET', '/v1/providers');
  await world.call('GET', '/v1/clients');
  await world.settle();
}

/** Runs statements on the log as an owner who bypasses its triggers. */
const tamper = (statements: string) =>
  world.sql(`BEGIN; SET LOCAL session_replication_role = replica; ${statements}; COMMIT`);

describe('the sealed audit log', () => {
  /** The ids of the first entries; the second is about p-1. */
  let a: string;
  let b: string;
  let c: string;

  beforeEach(async () => {
    await world.call('GET', '/v1/clients');
    const body = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
    await world.call('PUT', '/v1/providers/p-1', { body, wait: 20 });
    for (let turn = 0; turn < 3; turn += 1) await sealedEntries();
    const entries = await world.sql<{ id: string }>('SELECT id::text FROM audit_entries ORDER BY id LIMIT 3');
    [a, b, c] = entries.map(({ id }) => id) as [string, string, string];
  });

  test('holds while nobody changed it, and so does its head', async () => {
    const { faults, unsealed, entries, seals, head } = await verify();
    expect([faults, unsealed, entries >= 8, seals >= 3]).toEqual([[], 0, true, true]);
    expect((await verify(head)).headHolds).toBe(true);
  });

  test.each<[string, () => string, () => object[]]>([
    [
      'one character of an entry',
      () => `UPDATE audit_entries SET outcome = 'oK' WHERE id = ${a}`,
      () => [{ entry: a, fault: 'changed' }],
    ],
    [
      'a subject',
      () => `UPDATE audit_subjects SET subject = 'p-2' WHERE entry = ${b}`,
      () => [{ entry: b, fault: 'changed' }],
    ],
    [
      'a time',
      () => `UPDATE audit_entries SET at = '2020-01-01' WHERE id = ${a}`,
      () => [{ entry: a, fault: 'changed' }],
    ],
    ['a removed entry', () => `DELETE FROM audit_entries WHERE id = ${a}`, () => [{ entry: a, fault: 'removed' }]],
    [
      'an inserted entry',
      () =>
        `INSERT INTO audit_entries (id, key_id, key_name, action, outcome) VALUES (${a} + 1000, 'a', 'a', 'b', 'ok')`,
      () => [{ entry: String(Number(a) + 1_000), fault: 'inserted' }],
    ],
    [
      'two swapped entries',
      () => `UPDATE audit_entries SET id = CASE id WHEN ${a} THEN -${c} ELSE -${a} END WHERE id IN (${a}, ${c});
             UPDATE audit_entries SET id = -id WHERE id < 0`,
      () => [
        { entry: a, fault: 'changed' },
        { entry: c, fault: 'changed' },
      ],
    ],
    [
      'an entry removed together with its place in the seal',
      () => `DELETE FROM audit_entries WHERE id = ${a};
             UPDATE audit_seals SET entries = entries[2:], macs = substr(macs, 33) WHERE no = 1`,
      () => [{ seal: '1', fault: 'changed' }],
    ],
    ['a removed seal', () => 'DELETE FROM audit_seals WHERE no = 2', () => [{ seal: '2', fault: 'removed' }]],
  ])('reveals %s', async (_what, statements, faults) => {
    await tamper(statements());
    expect((await verify()).faults).toEqual(
      expect.arrayContaining(faults().map((each) => expect.objectContaining(each))),
    );
  });

  test('reveals a cut end only against a head that was kept elsewhere', async () => {
    const { head, seals } = await verify();
    await tamper(
      `DELETE FROM audit_entries WHERE id = ANY ((SELECT entries FROM audit_seals WHERE no = ${seals})::bigint[]);
       DELETE FROM audit_seals WHERE no = ${seals}`,
    );
    expect(await verify(head)).toMatchObject({ headHolds: false, faults: [] });
  });
});

test('retention removes whole seals from the start, none younger than a year, and the rest still holds', async () => {
  await sealedEntries();
  await world.advance('1 d');
  await sealedEntries();
  const old = await verify();
  await world.advance('2300 d');
  await sealedEntries();
  await expect(world.sql(`SELECT prune_audit(now() - interval '364 days')`)).rejects.toThrow(
    'kept for a year at least',
  );

  await world.work.retention();
  await world.settle();
  const actions = await world.sql<{ action: string; outcome: string }>('SELECT action, outcome FROM audit_entries');
  const pruned = actions.filter(({ action }) => action === 'retention.audit');
  expect(pruned.map(({ outcome }) => outcome)).toEqual([`${old.entries} removed up to seal ${old.head}`]);
  const left = await verify();
  expect(left).toMatchObject({ entries: actions.length, unsealed: 0, faults: [] });
});
