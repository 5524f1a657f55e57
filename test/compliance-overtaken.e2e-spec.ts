import { randomUUID } from 'node:crypto';
import { JobEventsHandler } from '../src/compliance/job-events.handler.js';
import { ResultRefresher } from '../src/compliance/result-refresher.js';
import { Database } from '../src/database/database.js';
import { WorkerProcess } from '../src/queue/due-rows/worker-process.js';
import { type RequestsApp, startRequestsApp } from './support/session-requests-app.js';

let app: RequestsApp;

beforeAll(async () => {
  app = await startRequestsApp();
});

afterAll(() => app?.close());

/** A job that was submitted, and is being looked up here. */
async function lookedUp() {
  const [id, jobId, owner] = [randomUUID(), randomUUID(), app.service.app.get(WorkerProcess).id];
  await app.sql(
    `INSERT INTO compliance_jobs (id, job_id, state, submitted_at, lease_owner, lease_no, lease_safe_at)
     VALUES ($1, $2, 'Submitted', now(), $3, 1, now() + interval '1 minute')`,
    [id, jobId, owner],
  );
  const row = { id, job_id: jobId, failures: 0, refused_at: null, traceparents: [] } as never;
  return { row, id, jobId, lease: { key: id, owner, no: 1 } };
}

const FOUND = ['unknown', 'running', 'completed'] as const;

test.each(FOUND)(
  'a look-up (%s) that left before the end was heard gives no result: the job is looked up once more at once',
  async (state) => {
    const claim = await lookedUp();
    const heard = await app.service.app.get(Database).transaction(async (tx) => {
      const event = {
        deliveryId: 'd-1',
        receivedAt: new Date(),
        waitingSince: new Date(),
        body: { payload: { jobId: claim.jobId } },
      };
      await app.service.app.get(JobEventsHandler).handle({ ...event, eventType: 'COMPLIANCE_JOB_COMPLETED' }, tx);
      const { rows } = await tx.query(
        // The column rounds to milliseconds, up to half of one into what comes.
        `SELECT due_at < clock_timestamp() + interval '1 millisecond' AS due FROM compliance_jobs WHERE id = $1`,
        [claim.id],
      );
      await tx.query('UPDATE compliance_jobs SET due_at = NULL WHERE id = $1', [claim.id]); // nothing else looks it up
      return rows[0];
    });
    expect(heard).toEqual({ due: true });
    await app.service.app.get(ResultRefresher).storeAnswer(claim, { state, raw: { of: 'before' } });
    expect(await app.sql('SELECT state, result FROM compliance_jobs WHERE id = $1', [claim.id])).toEqual([
      { state: 'Completed', result: null },
    ]);
  },
);

test.each(FOUND)('a look-up (%s) whose lease is another’s by now stores nothing', async (state) => {
  const claim = await lookedUp();
  await app.sql('UPDATE compliance_jobs SET lease_no = 2 WHERE id = $1', [claim.id]);
  const row = () => app.sql('SELECT * FROM compliance_jobs WHERE id = $1', [claim.id]);
  const before = await row();
  const results = app.service.app.get(ResultRefresher);
  await results.storeAnswer(claim, { state, raw: {} });
  await results.storeNotFound(claim, 1_000);
  await results.storeFault(claim, 'platform-unreachable', 1_000, 1);
  expect(await row()).toEqual(before);
});
