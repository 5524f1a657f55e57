import { randomUUID } from 'node:crypto';
import { JobEventsHandler } from '../../src/compliance/job-events.handler.js';
import { ResultRefresher } from '../../src/compliance/result-refresher.js';
import { Database } from '../../src/database/database.js';
import { WorkerProcess } from '../../src/queue/due-rows/worker-process.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

/** A submitted job whose lookup is in progress. */
async function lookedUp() {
  const [id, jobId, owner] = [randomUUID(), randomUUID(), world.get(WorkerProcess).id];
  await world.sql(
    `INSERT INTO compliance_jobs (id, job_id, state, submitted_at, lease_owner, lease_no, lease_safe_at)
     VALUES ($1, $2, 'Submitted', now(), $3, 1, now() + interval '1 minute')`,
    [id, jobId, owner],
  );
  const row = { id, job_id: jobId, failures: 0, refused_at: null, traceparents: [] } as never;
  return { row, id, jobId, lease: { key: id, owner, no: 1 } };
}

const FOUND = ['unknown', 'running', 'completed'] as const;

test.each(FOUND)(
  'a lookup (%s) sent before the final event gives no result and is repeated immediately',
  async (state) => {
    const claim = await lookedUp();
    await world.get(Database).transaction((tx) =>
      world.get(JobEventsHandler).handle(
        {
          eventType: 'COMPLIANCE_JOB_COMPLETED',
          deliveryId: 'd-1',
          receivedAt: new Date(),
          waitingSince: new Date(),
          body: { payload: { jobId: claim.jobId } },
        },
        tx,
      ),
    );
    await world.advance('1 ms');
    expect(await world.sql('SELECT due_at <= now() AS due FROM compliance_jobs')).toEqual([{ due: true }]);
    await world.get(ResultRefresher).storeAnswer(claim, { state, raw: { of: 'before' } });
    expect(await world.sql('SELECT state, result FROM compliance_jobs')).toEqual([
      { state: 'Completed', result: null },
    ]);
  },
);

test.each(FOUND)('a lookup (%s) that lost its lease stores nothing', async (state) => {
  const claim = await lookedUp();
  await world.sql('UPDATE compliance_jobs SET lease_no = 2');
  const row = () => world.sql('SELECT * FROM compliance_jobs');
  const before = await row();
  const results = world.get(ResultRefresher);
  await results.storeAnswer(claim, { state, raw: {} });
  await results.storeNotFound(claim, 1_000);
  await results.storeFault(claim, 'platform-unreachable', 1_000, 1);
  expect(await row()).toEqual(before);
});
