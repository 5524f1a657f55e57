import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { BEFORE_THE_FIRST, sealBatch } from '../src/access/audit/seal-chain.js';
import { entriesOf, lastSeal, storeSeal, unsealedIds } from '../src/access/audit/seals.repository.js';
import { type Verification, verifyTrail } from '../src/access/audit/verify-trail.js';
import { Clock } from '../src/config/clock.js';
import { Env } from '../src/config/env.js';
import type { Database } from '../src/database/database.js';
import { AuditSealer } from '../src/operations/audit-sealer.js';
import type { Poller } from '../src/queue/notifier/poller.js';
import { testSettings } from './support/app.js';
import { auditOf, testVault } from './support/audit.js';
import { freshDatabase, query, type TestDatabase } from './support/databases.js';
import { openDatabase } from './support/open-database.js';
import { type Mirror, useMirrors } from './support/service.js';

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

/** What the command says: its exit code, and its answer as JSON. */
async function verify(...options: string[]): Promise<{ code: number; answer: Verification }> {
  const env = { PATH: process.env.PATH, ...testSettings(mirror.database.url) };
  const file = ['bin/notebridge.js', 'audit', 'verify', '--json', ...options];
  const ran = await promisify(execFile)(process.execPath, file, { env }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
  );
  return { code: ran.code, answer: JSON.parse(ran.stdout) as Verification };
}

const allSealed = () =>
  until('every entry has its seal', async () => (await mirror.sql('SELECT FROM audit_unsealed')).length === 0);

/** Runs statements on the trail as its owner may, and takes them back. */
async function tampered(statements: string[], look: () => Promise<void>): Promise<void> {
  const tables = ['audit_entries', 'audit_subjects', 'audit_seals'];
  const copies = tables.map((table) => `CREATE TABLE kept_${table} AS SELECT * FROM ${table}`);
  const back = [
    ...tables.map((table) => `DELETE FROM ${table}`),
    ...tables.map((table) => `INSERT INTO ${table} SELECT * FROM kept_${table}; DROP TABLE kept_${table}`),
  ];
  const run = (texts: string[]) => mirror.sql(`SET notebridge.audit_pruning = 'on'; ${texts.join('; ')}`);
  const triggers = (how: 'ENABLE' | 'DISABLE') => tables.map((table) => `ALTER TABLE ${table} ${how} TRIGGER USER`);
  await run([...copies, ...triggers('DISABLE'), ...statements]);
  await look();
  await run([...back, ...triggers('ENABLE')]);
}

beforeAll(async () => {
  mirror = await newMirror();
  service = await mirror.start();
  const body = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
  await service.call('PUT', '/v1/providers/p-1', { body, wait: 20 });
  for (let turn = 0; turn < 3; turn++) {
    await service.call('GET', '/v1/providers');
    await service.call('GET', '/v1/providers/p-1');
    await allSealed();
  }
  // Nothing is added from now on, so that what is put back is what was there.
  await service.kill('SIGTERM');
});

test('a trail that nobody touched holds, and its head too', async () => {
  const { code, answer } = await verify();
  expect([code, answer.faults, answer.unsealed]).toEqual([0, [], 0]);
  expect([answer.entries >= 7, answer.seals >= 3]).toEqual([true, true]);
  expect((await verify('--head', answer.head)).answer.headHolds).toBe(true);
});

test.each<[string, string[], object[]]>([
  [
    'one character of an entry',
    [`UPDATE audit_entries SET outcome = 'oK' WHERE id = 2`],
    [{ entry: '2', fault: 'changed' }],
  ],
  ['a subject', [`UPDATE audit_subjects SET subject = 'p-2' WHERE entry = 3`], [{ entry: '3', fault: 'changed' }]],
  ['a moment', [`UPDATE audit_entries SET at = at - interval '1 ms' WHERE id = 2`], [{ entry: '2', fault: 'changed' }]],
  ['an entry that is gone', ['DELETE FROM audit_entries WHERE id = 2'], [{ entry: '2', fault: 'removed' }]],
  [
    'an entry that is new',
    [`INSERT INTO audit_entries (id, key_id, key_name, action, outcome) VALUES (1000, 'a', 'a', 'b', 'ok')`],
    [{ entry: '1000', fault: 'inserted' }],
  ],
  [
    'two entries that changed places',
    [
      'UPDATE audit_entries SET id = CASE id WHEN 2 THEN -3 ELSE -2 END WHERE id IN (2, 3)',
      'UPDATE audit_entries SET id = -id WHERE id < 0',
    ],
    [
      { entry: '2', fault: 'changed' },
      { entry: '3', fault: 'changed' },
    ],
  ],
  [
    'an entry and its place in the seal',
    [
      'DELETE FROM audit_entries WHERE id = 1',
      'UPDATE audit_seals SET entries = entries[2:], macs = substr(macs, 33) WHERE no = 1',
    ],
    [{ seal: '1', fault: 'changed' }],
  ],
  ['a seal', ['DELETE FROM audit_seals WHERE no = 2'], [{ seal: '2', fault: 'removed' }]],
])('%s is found and named', async (_what, statements, faults) => {
  await tampered(statements, async () => {
    const { code, answer } = await verify();
    expect([code, answer.faults.slice(0, faults.length)]).toMatchObject([2, faults]);
  });
});

test('what was cut off the end is found by a head that was kept', async () => {
  const { head, seals } = (await verify()).answer;
  const cut = [
    `DELETE FROM audit_entries WHERE id = ANY ((SELECT entries FROM audit_seals WHERE no = ${seals})::bigint[])`,
    `DELETE FROM audit_seals WHERE no = ${seals}`,
  ];
  await tampered(cut, async () => {
    expect((await verify()).code).toBe(0);
    expect((await verify('--head', head)).answer).toMatchObject({ headHolds: false, faults: [] });
  });
  expect((await verify()).answer.faults).toEqual([]);
});

describe('retention', () => {
  let home: TestDatabase;
  let database: Database;
  beforeAll(async () => {
    home = await freshDatabase();
    database = openDatabase(home);
  });
  afterAll(async () => {
    await database.onApplicationShutdown();
    await home.drop();
  });

  test('takes whole seals from the beginning, none younger than a year, and the rest still holds', async () => {
    const audit = auditOf(database);
    const vault = testVault();
    const mac = (purpose: string, value: string) => vault.fingerprint(purpose, value);
    for (const [no, at] of [
      ['1', '2019-01-01T00:00:00.000Z'],
      ['2', '2019-01-02T00:00:00.000Z'],
      ['3', new Date().toISOString()],
    ] as const) {
      for (let turn = 0; turn < 3; turn++) await audit.system('test', { client: [`c-${no}-${turn}`] });
      await query(
        home,
        `SET session_replication_role = replica;
         UPDATE audit_entries SET at = '${at}' WHERE id IN (SELECT entry FROM audit_unsealed);
         RESET session_replication_role`,
      );
      const ids = await unsealedIds(database.pool, 10);
      const before = (await lastSeal(database.pool))?.mac ?? BEFORE_THE_FIRST;
      await storeSeal(database.pool, sealBatch(mac, { no, at }, ids, await entriesOf(database.pool, ids), before));
    }
    const cut = (when: string) => query(home, `SELECT * FROM prune_audit(now() - interval '${when}')`);
    await expect(cut('364 days')).rejects.toThrow('kept for a year at least');

    const env = Object.assign(new Env(), { AUDIT_RETENTION_DAYS: 2_192 });
    const sealer = new AuditSealer(database, vault, audit, env, new Clock(), {} as Poller);
    await sealer.prune();
    await sealer.sealAll();
    const left = await query<{ action: string; outcome: string }>(
      home,
      'SELECT action, outcome FROM audit_entries ORDER BY id',
    );
    expect(left.map(({ action }) => action)).toEqual(['test', 'test', 'test', 'retention.audit']);
    expect(left.at(-1)?.outcome).toMatch(/^6 removed up to seal 2:[0-9a-f]{64}$/);
    expect(await query(home, `SELECT FROM audit_subjects WHERE subject LIKE 'c-2-%'`)).toEqual([]);
    expect(await verifyTrail(database.pool, mac)).toMatchObject({ seals: 2, entries: 4, unsealed: 0, faults: [] });
  });
});
