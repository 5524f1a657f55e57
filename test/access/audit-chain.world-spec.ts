import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Logger } from '@nestjs/common';
import { AUDIT_KEYS } from '../../harness/world/settings.js';
import { BEGINNING, type ChainFault, type Link, signCut, signEntry, signLink } from '../../src/audit/chain.js';
import { entriesOf, lastLink, linksAfter } from '../../src/audit/chain.repository.js';
import { verifyLog } from '../../src/audit/verify-log.js';
import { AuditRotation } from '../../src/cli/data/rotate-audit.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { KeyedHashes } from '../../src/vault/keyed-hashes.js';
import { parseKeys } from '../../src/vault/keys.js';
import { Macs } from '../../src/vault/macs.js';
import { keyPair, rotate } from '../vault/rotate.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const verify = (...heads: string[]) => verifyLog(world.database.pool, world.get(Macs), heads);

/** Makes two entries, and links them. */
async function linkedEntries(): Promise<void> {
  await world.call('GET', '/v1/providers');
  await world.call('GET', '/v1/clients');
  await world.settle();
}

/** Runs statements on the log as an owner who bypasses its triggers. */
const tamper = (statements: string) =>
  world.sql(`BEGIN; SET LOCAL session_replication_role = replica; ${statements}; COMMIT`);

const healthOf = async (name: string) => {
  const { body } = await world.call<HealthReport>('GET', '/health/ready');
  return body.checks[name];
};

/** SQL that copies an entry under another id, with other values of columns. */
const copyOf = (id: string, as: string, columns: Record<string, string> = {}) => `
  INSERT INTO audit_entries SELECT (jsonb_populate_record(e, jsonb_build_object('id', ${as}${Object.entries(columns)
    .map(([name, value]) => `, '${name}', ${value}`)
    .join('')}))).* FROM audit_entries e WHERE e.id = ${id}`;

/** Removes an entry with what is about it. */
const removal = (
  id: string,
) => `DELETE FROM audit_entries WHERE id = ${id}; DELETE FROM audit_subjects WHERE entry = ${id};
  DELETE FROM audit_unlinked WHERE entry = ${id}`;

describe('the chain of the audit log', () => {
  /** The ids of the first entries. `b` is about p-1. */
  let [a, b, c] = ['', '', ''];

  beforeEach(async () => {
    await world.call('GET', '/v1/clients');
    const body = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
    await world.call('PUT', '/v1/providers/p-1', { body, wait: 20 });
    for (let turn = 0; turn < 3; turn += 1) await linkedEntries();
    const entries = await world.sql<{ id: string }>('SELECT id::text FROM audit_entries ORDER BY id LIMIT 3');
    [a, b, c] = entries.map(({ id }) => id) as [string, string, string];
  });

  it('has no fault while nothing was changed, and contains its heads', async () => {
    const first = await verify();
    expect(first).toMatchObject({ faults: [], unlinked: 0 });
    expect([first.entries >= 8, first.links >= 3]).toEqual([true, true]);
    await linkedEntries();
    expect(await verify(first.head)).toMatchObject({ faults: [], heads: { found: 1, cut: 0 } });
    expect(await healthOf('audit-chain')).toEqual({ status: 'ok' });
  });

  const change = (column: string, value: string): [string, () => string, () => ChainFault[]] => [
    `another ${column}`,
    () => `UPDATE audit_entries SET ${column} = ${value} WHERE id = ${a}`,
    () => [{ entry: a, fault: 'changed' }],
  ];

  test.each<[string, () => string, () => ChainFault[]]>([
    change('uid', 'gen_random_uuid()'),
    change('at', `at - interval '1 millisecond'`),
    change('key_id', `'k'`),
    change('key_name', `'k'`),
    change('issuer', `'https://login.example'`),
    change('action', `'GET /v1/providers'`),
    change('outcome', `'oK'`),
    change('on_behalf_of', `'u-1'`),
    change('purpose', `'TREAT'`),
    change('request_id', 'NULL'),
    change('source', `'192.0.2.1'`),
    change('filter', `'{"state": "synced"}'`),
    [
      'another subject',
      () => `UPDATE audit_subjects SET subject = 'p-2' WHERE entry = ${b}`,
      () => [{ entry: b, fault: 'changed' }],
    ],
    [
      'a range',
      () => `INSERT INTO audit_ranges VALUES (${a}, 'client', 51, 'c-1', 'c-2')`,
      () => [{ entry: a, fault: 'changed' }],
    ],
    ['a removed entry', () => removal(b), () => [{ entry: b, fault: 'removed' }]],
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
      'an invented entry outside the chain',
      () => copyOf(a, '1000000', { uid: 'gen_random_uuid()' }),
      () => [{ entry: '1000000', fault: 'inserted' }],
    ],
    [
      'an invented entry with a link',
      () => `${copyOf(a, '1000000', { uid: 'gen_random_uuid()' })};
             INSERT INTO audit_links SELECT no + 1, at, '{1000000}', ARRAY[mac], mac, '{}', mac FROM audit_links ORDER BY no DESC LIMIT 1`,
      () => [{ entry: '1000000', fault: 'changed' }],
    ],
    [
      'an entry removed together with its place in the link',
      () => `${removal(a)}; UPDATE audit_links SET entries = entries[2:], macs = macs[2:] WHERE no = 1`,
      () => [{ link: '1', fault: 'changed' }],
    ],
    ['a link with another time', () => `UPDATE audit_links SET at = now()`, () => [{ link: '1', fault: 'changed' }]],
    [
      'an invented former MAC of a link',
      () => 'UPDATE audit_links SET former = ARRAY[mac] WHERE no = 1',
      () => [{ link: '1', fault: 'changed' }],
    ],
    ['a removed link', () => 'DELETE FROM audit_links WHERE no = 2', () => [{ link: '2', fault: 'removed' }]],
    [
      'a link before the first',
      () =>
        `INSERT INTO audit_links SELECT no - 5, at, entries, macs, previous, former, mac FROM audit_links WHERE no = 1`,
      () => [{ link: '-4', fault: 'inserted' }],
    ],
    [
      'a removed beginning with an invented cut',
      () => `DELETE FROM audit_entries WHERE id = ANY (SELECT unnest(entries) FROM audit_links WHERE no <= 2);
             INSERT INTO audit_cuts SELECT no, at + interval '7 years', at, 1, ARRAY[mac], mac FROM audit_links WHERE no = 2;
             DELETE FROM audit_links WHERE no <= 2`,
      () => [
        { cut: '2', fault: 'unsigned' },
        { link: '1 to 2', fault: 'removed' },
      ],
    ],
  ])('reveals %s', async (_what, statements, faults) => {
    await tamper(statements());
    expect((await verify()).faults).toEqual(
      expect.arrayContaining(faults().map((fault) => expect.objectContaining(fault))),
    );
  });

  it('reveals a removed end by a head that was stored elsewhere', async () => {
    const { head, links } = await verify();
    await tamper(
      `DELETE FROM audit_entries WHERE id = ANY (SELECT unnest(entries) FROM audit_links WHERE no = ${links});
       DELETE FROM audit_links WHERE no = ${links}`,
    );
    expect((await verify()).faults).toEqual([]);
    expect((await verify(head)).faults).toEqual([{ head, fault: 'removed' }]);
    await linkedEntries();
    expect(await healthOf('audit-chain')).toMatchObject({
      status: 'degraded',
      reason: expect.stringContaining('lost'),
    });
  });

  it('reveals a link of another chain, although it is signed', async () => {
    const last = await lastLink(world.database.pool);
    if (!last) throw new Error('There is no link.');
    const place = { no: String(BigInt(last.no) + 1n), at: world.now().toISOString(), previous: BEGINNING };
    const link = signLink(world.get(Macs), { ...place, entries: [], macs: [], former: [] });
    await world.sql(
      'INSERT INTO audit_links (no, at, previous, entries, macs, former, mac) VALUES ($1, $2, $3, $4, $5, $6, $7)',
      Object.values(link),
    );
    expect((await verify()).faults).toEqual([{ link: last.no, fault: 'changed' }]);
  });

  it('reveals a cut of links that were too young', async () => {
    const link = await lastLink(world.database.pool);
    if (!link) throw new Error('There is no link.');
    const at = world.now().toISOString();
    const cut = signCut(world.get(Macs), { upTo: '1', at, linkedAt: at, entries: 1, macs: [link.mac] });
    await world.sql('INSERT INTO audit_cuts VALUES ($1, $2, $3, $4, $5, $6)', Object.values(cut));
    expect((await verify()).faults).toEqual([{ cut: '1', fault: 'too-young' }]);
  });
});

describe('a new entry', () => {
  /** Adds an entry that is not linked yet. @returns its id */
  async function unlinked(): Promise<string> {
    await world.call('GET', '/v1/clients');
    const [row] = await world.sql<{ id: string }>('SELECT max(entry)::text AS id FROM audit_unlinked');
    return String(row?.id);
  }

  it.each([
    ['invented', (id: string) => copyOf(id, '1000000', { uid: 'gen_random_uuid()' })],
    ['changed', (id: string) => `UPDATE audit_entries SET id = 1000000, outcome = 'oK' WHERE id = ${id}`],
  ])('is reported as unsigned, with its link, if it was %s', async (_what, statement) => {
    const id = await unlinked();
    await tamper(`${statement(id)}; UPDATE audit_unlinked SET entry = 1000000`);
    expect((await verify()).faults).toContainEqual({ entry: '1000000', fault: 'unsigned' });
    await world.settle();
    expect((await verify()).faults).toContainEqual({ entry: '1000000', link: '1', fault: 'unsigned' });
    expect(await healthOf('audit-chain')).toMatchObject({ status: 'degraded' });
  });

  it('is reported as repeated if it is a copy', async () => {
    const id = await unlinked();
    await tamper(`${copyOf(id, '1000000')}; INSERT INTO audit_unlinked VALUES (1000000)`);
    await world.settle();
    expect((await verify()).faults).toEqual([{ entry: '1000000', fault: 'repeated' }]);
  });

  it('is reported as repeated if it was queued again after its link', async () => {
    const id = await unlinked();
    await world.settle();
    await world.sql('INSERT INTO audit_unlinked VALUES ($1)', [id]);
    await world.settle();
    expect((await verify()).faults).toEqual([{ entry: id, fault: 'repeated' }]);
  });

  it('is reported as misdated if the clock of its process was six minutes ahead', async () => {
    const id = await unlinked();
    const [entry] = await entriesOf(world.database.pool, [id]);
    if (!entry) throw new Error('There is no entry.');
    const at = new Date(Date.parse(entry.at) + 6 * 60_000).toISOString();
    const mac = signEntry(world.get(Macs), { ...entry, at }).toString('hex');
    await tamper(`UPDATE audit_entries SET at = '${at}', mac = '\\x${mac}' WHERE id = ${id}`);
    await world.settle();
    expect((await verify()).faults).toEqual([{ entry: id, link: '1', fault: 'misdated' }]);
  });

  it('is reported as misdated if it was removed and reinserted later', async () => {
    const id = await unlinked();
    await tamper(`CREATE TEMP TABLE kept AS SELECT * FROM audit_entries; ${removal(id)}`);
    await world.advance('6 min');
    await linkedEntries();
    await world.sql(
      `INSERT INTO audit_entries SELECT * FROM kept; INSERT INTO audit_unlinked VALUES (${id}); DROP TABLE kept`,
    );
    await world.settle();
    expect((await verify()).faults).toEqual([{ entry: id, link: '2', fault: 'misdated' }]);
  });

  it('may wait for its link while no worker runs, and degrades health after 10 seconds', async () => {
    await unlinked();
    await world.advance('9 s');
    expect(await healthOf('audit-chain')).toEqual({ status: 'ok' });
    await world.advance('6 min');
    expect(await healthOf('audit-chain')).toMatchObject({
      status: 'degraded',
      reason: expect.stringContaining('369 seconds'),
    });
    await linkedEntries();
    expect((await verify()).faults).toEqual([]);
  });

  it.each([
    ['the link', 'EXCLUSIVE'],
    ['all that follows', 'ACCESS EXCLUSIVE'],
  ])('is missed if it was removed after a worker read it, although a lock delayed %s', async (_, mode) => {
    const id = await unlinked();
    const other = await world.database.pool.connect();
    await other.query(`BEGIN; LOCK TABLE audit_links IN ${mode} MODE`);
    const linking = world.work.links();
    await world.eventually('the worker waits', async () => {
      const waiting = await world.sql(
        `SELECT FROM pg_stat_activity WHERE wait_event = 'relation' AND query LIKE '%audit_links%'`,
      );
      return waiting.length > 0;
    });
    await tamper(removal(id));
    await other.query('ROLLBACK');
    other.release();
    await linking;
    expect((await verify()).faults).toEqual([{ entry: id, link: '1', fault: 'removed' }]);
  });

  it('is missed before it is linked if only its place in the queue is left', async () => {
    const id = await unlinked();
    await tamper(`DELETE FROM audit_entries WHERE id = ${id}; DELETE FROM audit_subjects WHERE entry = ${id}`);
    expect((await verify()).faults).toEqual([{ entry: id, fault: 'removed' }]);
  });

  it('is linked once if another worker queued it', async () => {
    await unlinked();
    const another = await world.startAnother();
    await Promise.all([world.work.links(), another.work.links()]);
    await linkedEntries();
    expect(await verify()).toMatchObject({ faults: [], links: 2 });
  });
});

describe('the retention of the audit log', () => {
  it('removes whole links from the start, none younger than a year, and signs the cut', async () => {
    await linkedEntries();
    await world.advance('1 d');
    await linkedEntries();
    const old = await verify();
    await world.advance('2300 d');
    await linkedEntries();
    const recent = await verify();
    await expect(world.sql(`SELECT prune_audit(now() - interval '364 days', 1)`)).rejects.toThrow('a year at least');
    await expect(world.sql(`SELECT prune_audit(now() - interval '366 days', 3)`)).rejects.toThrow('too young');
    await world.work.retention();
    await world.settle();
    const entries = await world.sql<{ action: string; outcome: string }>('SELECT action, outcome FROM audit_entries');
    const removals = entries.filter(({ action }) => action === 'retention.audit');
    expect(removals.map(({ outcome }) => outcome)).toEqual([`${old.entries} removed up to link ${old.links}`]);
    const first = `1:${'0'.repeat(70)}`;
    expect(await verify(first, old.head, recent.head)).toMatchObject({
      ...{ entries: entries.length, faults: [], heads: { found: 2, cut: 1 } },
    });
    await tamper('UPDATE audit_cuts SET entries = 0');
    expect((await verify()).faults).toContainEqual({ cut: '2', fault: 'unsigned' });
  });

  it.each<[string, (link: Link) => string]>([
    ['was changed', () => `at = at - interval '1 day'`],
    [
      'is of another chain',
      (link) => {
        const { previous, mac } = signLink(world.get(Macs), { ...link, previous: Buffer.from('another') });
        return `previous = '\\x${previous.toString('hex')}', mac = '\\x${mac.toString('hex')}'`;
      },
    ],
  ])('removes nothing while a link that it would remove %s', async (_what, change) => {
    await linkedEntries();
    await world.advance('2300 d');
    await linkedEntries();
    const [first] = await linksAfter(world.database.pool, null, 1);
    await tamper(`UPDATE audit_links SET ${change(first as Link)} WHERE no = 1`);
    await world.work.retention();
    expect(await world.sql('SELECT FROM audit_links')).toHaveLength(2);
    expect(await healthOf('audit-chain')).toMatchObject({
      status: 'degraded',
      reason: expect.stringContaining('was changed'),
    });
  });
});

describe('a rotation of AUDIT_KEYS', () => {
  const NEW_KEY = keyPair('a2', 5);
  const both = parseKeys([NEW_KEY, AUDIT_KEYS]);

  it('is resumed after an interruption, alongside requests, and the old key can be removed', async () => {
    await world.call('POST', '/v1/api-keys', { body: { name: 'ehr', scopes: ['imports'] } });
    await linkedEntries();
    await world.advance('2300 d');
    for (let turn = 0; turn < 3; turn += 1) await linkedEntries();
    await world.work.retention();
    const before = await verify();
    await world.call('GET', '/v1/clients'); // signed with the old key, linked by a worker with the new one
    await world.restart({ AUDIT_KEYS: `${NEW_KEY},${AUDIT_KEYS}` });
    const client = await world.database.pool.connect();
    const rotation = new AuditRotation(client, both);
    const stale = async () => (await rotation.count()).map(({ table, stale }) => `${table} ${stale}`);
    const grants = ['api_keys 1', 'browser_sessions 0'];
    const first = ['audit_links 3', 'audit_cuts 1', 'audit_entries 2', ...grants];
    expect(await stale()).toEqual(first);
    let calls = 0;
    const onProgress = () => {
      calls += 1;
      if (calls === 3) throw new Error('interrupted');
    };
    await expect(rotation.run({ onProgress, onUnreadable: () => undefined })).rejects.toThrow('interrupted');
    client.release(true);
    await linkedEntries();
    expect(await verify(before.head)).toMatchObject({ faults: [], heads: { found: 1 } });
    const report = await rotate(world, 'audit', { AUDIT_KEYS: `${NEW_KEY},${AUDIT_KEYS}` });
    expect(report).toMatchObject({ left: 0, unreadable: [], keys: [{ key: 'a2' }, { key: 'a1', droppable: true }] });
    await world.restart({ AUDIT_KEYS: NEW_KEY });
    await linkedEntries();
    const { head } = await verify();
    expect(await verify(before.head, head)).toMatchObject({ faults: [], heads: { found: 2, cut: 0 } });
    expect(await healthOf('audit-chain')).toEqual({ status: 'ok' });
  });

  it('does not sign earlier changes', async () => {
    for (let turn = 0; turn < 3; turn += 1) await linkedEntries();
    const [{ id } = { id: '' }] = await world.sql<{ id: string }>('SELECT min(id)::text AS id FROM audit_entries');
    await tamper(`UPDATE audit_entries SET outcome = 'oK' WHERE id = ${id};
      UPDATE audit_links SET at = at - interval '1 s' WHERE no = 2`);
    await world.restart({ AUDIT_KEYS: `${NEW_KEY},${AUDIT_KEYS}` });
    const { unreadable, left } = await rotate(world, 'audit', { AUDIT_KEYS: `${NEW_KEY},${AUDIT_KEYS}` });
    expect(unreadable).toEqual([
      { table: 'audit_entries', column: 'mac', row: id },
      { table: 'audit_links', column: 'mac', row: '2' },
    ]);
    expect(left).toBe(0);
    const { faults } = await verifyLog(world.database.pool, new Macs(new KeyedHashes(parseKeys([NEW_KEY]))));
    expect(faults).toContainEqual({ entry: id, link: '1', fault: 'changed' });
    expect(faults).toContainEqual({ link: '2', fault: 'changed' });
    expect(faults.filter(({ link }) => link === '3')).toEqual([]);
  });

  it('is the only reason to change a link', async () => {
    await linkedEntries();
    await expect(world.sql(`UPDATE audit_links SET former = '{}'`)).rejects.toThrow('append-only');
  });
});

test('the newest link is in the log of the service once, after it changed', async () => {
  const logged = jest.spyOn(Logger.prototype, 'log');
  const heads = () =>
    logged.mock.calls.flatMap(([line]) => (line.msg === 'the newest link of the audit log' ? [line.head] : []));
  await linkedEntries();
  const { head } = await verify();
  for (let minute = 0; minute < 2; minute += 1) await world.work.heads();
  expect(heads()).toEqual([head]);
  await linkedEntries();
  await world.work.heads();
  expect(heads()).toEqual([head, (await verify()).head]);
});

describe('AUDIT_HEADS_URL', () => {
  const received: unknown[] = [];
  let status = 204;
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      received.push(JSON.parse(text));
      response.writeHead(status).end();
    });
  });
  beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => server.close());

  it('receives the newest link each minute, and degrades health after five failures', async () => {
    await world.restart({ AUDIT_HEADS_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/heads` });
    await linkedEntries();
    await world.work.heads();
    const [first] = received.splice(0) as { head: string; at: string }[];
    expect(await verify(String(first?.head))).toMatchObject({ faults: [], heads: { found: 1 } });
    status = 500;
    for (let minute = 0; minute < 4; minute += 1) await world.work.heads();
    expect(await healthOf('audit-heads')).toEqual({ status: 'ok' });
    await world.work.heads();
    expect(await healthOf('audit-heads')).toMatchObject({
      status: 'degraded',
      reason: expect.stringContaining('5 minutes'),
    });
    status = 204;
    await world.work.heads();
    expect(await healthOf('audit-heads')).toEqual({ status: 'ok' });
  });
});
