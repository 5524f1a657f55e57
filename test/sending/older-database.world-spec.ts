import type { World } from '../../harness/world/world.js';
import { PlatformHttp } from '../../src/platform/http/platform-http.js';
import { WorkerProcess } from '../../src/processes/worker-process.js';
import type { SendingResponse } from '../../src/sending/sending.dto.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const sending = async () => (await world.call<SendingResponse>('GET', '/v1/sending')).body;
const OLDER = { held: true, restored: true, by: 'system', reason: 'older-database' };
const FREE = { held: false, restored: false };

/** A call that changes something. @returns the kind of its error; undefined if it was answered */
const send = () =>
  world
    .get(PlatformHttp)
    .call({ operation: 'initiateAuth', body: { userId: 'x' } }, () => undefined)
    .catch(({ kind }) => kind);

/** Copies the rows of the processes. @returns a function that restores them */
async function backup(of: World = world): Promise<() => Promise<void>> {
  const rows = await of.sql<{ row: string }>('SELECT w::text AS row FROM workers w');
  return async () => {
    await of.sql('DELETE FROM workers');
    await of.sql('INSERT INTO workers SELECT (r::workers).* FROM unnest($1::text[]) AS r', [
      rows.map(({ row }) => row),
    ]);
  };
}

describe('a process notices that the database was restored', () => {
  it.each(['0 ms', '2 s', '2 d'] as const)('at its heartbeat, %s later, and holds for all processes', async (span) => {
    const another = await world.startAnother();
    const restore = await backup();
    await world.advance('2 s');
    await restore();
    if (span !== '0 ms') await world.advance(span);
    await another.beat(); // it has lost nothing that it wrote
    await world.advance('2 s');
    expect(await sending()).toMatchObject(OLDER);
    expect(await world.sql(`SELECT outcome FROM audit_entries WHERE action = 'sending.held'`)).toEqual([
      { outcome: 'older-database' },
    ]);
  });

  it('before its next call, although no heartbeat was lost', async () => {
    await world.advance('2 s');
    const restore = await backup();
    await send();
    await restore();
    const before = world.platform.arrivals();
    expect([await send(), world.platform.arrivals() - before]).toEqual(['held', 0]);
    expect(await sending()).toMatchObject(OLDER);
  });

  it('if it started after the backup', async () => {
    const restore = await backup();
    await world.restart();
    await restore();
    await world.advance('2 s');
    expect(await sending()).toMatchObject(OLDER);
  });

  it('even if the backup contains a hold, which no later one replaces', async () => {
    await world.call('PUT', '/v1/sending', { body: { held: true, reason: 'CASE-1' } });
    const restore = await backup();
    await world.advance('2 s');
    await restore();
    await world.advance('2 s');
    await world.call('PUT', '/v1/sending', { body: { held: true, reason: 'CASE-2' } });
    expect(await sending()).toMatchObject(OLDER);
    await world.restart({ HOLD_SENDING: 'true' });
    expect(await sending()).toMatchObject(OLDER);
  });

  it('once: after the release it continues, with a new epoch of the feed', async () => {
    const { cursor } = (await world.call<{ cursor: string }>('GET', '/v1/events?after=latest')).body;
    const restore = await backup();
    await world.advance('2 s');
    await restore();
    await world.advance('2 s');
    await world.call('PUT', '/v1/sending', { body: { held: false } });
    expect((await world.call('GET', `/v1/events?after=${cursor}`)).status).toBe(410);
    await world.advance('2 s');
    expect([(await sending()).held, await send()]).not.toContain('held');
    expect((await sending()).held).toBe(false);
  });
});

describe('a process notices nothing', () => {
  it('if heartbeats and calls get no answer although they were committed', async () => {
    const worker = world.get(WorkerProcess);
    await world.sql('UPDATE workers SET marks = marks + 5');
    await worker.beat();
    expect(await sending()).toMatchObject(FREE);
  });

  it('if it was suspended for days while others started and ended', async () => {
    await world.sql(`UPDATE workers SET alive_until = alive_until - interval '3 days'`);
    await world.sql(
      `INSERT INTO workers (id, no, marks, alive_until)
       SELECT gen_random_uuid(), (SELECT max(no) FROM workers) + n, 1, now() - interval '2 days' FROM generate_series(1, 150) AS n`,
    );
    await world.startAnother();
    const [{ kept } = {}] = await world.sql<{ kept: number }>('SELECT count(*)::int AS kept FROM workers');
    expect(kept).toBe(100);
    await world.advance('2 s');
    expect(await sending()).toMatchObject(FREE);
  });

  it('if calls and heartbeats run at the same time', async () => {
    const worker = world.get(WorkerProcess);
    await Promise.all(Array.from({ length: 30 }, (_, at) => (at % 3 === 0 ? worker.beat() : send())));
    expect(await sending()).toMatchObject(FREE);
  });
});
