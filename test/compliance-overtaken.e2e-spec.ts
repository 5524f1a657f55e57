import { randomUUID } from 'node:crypto';
import { JobEventsRepository } from '../src/compliance/results/job-events.repository.js';
import { ResultsRepository } from '../src/compliance/results/results.repository.js';
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
  return { id, jobId, lease: { key: id, owner, no: 1 }, failures: 0, refusedAt: null };
}

const FOUND = ['unknown', 'running', 'completed'] as const;

test.each(FOUND)(
  'a look-up (%s) that left before the end was heard gives no result: the job is looked up once more at once',
  async (state) => {
    const turn = await lookedUp();
    const kept = await app.service.app.get(Database).transaction(async (tx) => {
      await app.service.app.get(JobEventsRepository).hearCompliance(tx, turn.jobId, 'Completed');
      await app.service.app.get(ResultsRepository).storeAnswer(tx, turn, { state, raw: { of: 'before' } });
      const { rows } = await tx.query(
        'SELECT state, result, due_at <= clock_timestamp() AS due FROM compliance_jobs WHERE id = $1',
        [turn.id],
      );
      return rows[0];
    });
    expect(kept).toEqual({ state: 'Completed', result: null, due: true });
  },
);

test.each(FOUND)('a look-up (%s) whose lease is another’s by now stores nothing', async (state) => {
  const turn = await lookedUp();
  await app.sql('UPDATE compliance_jobs SET lease_no = 2 WHERE id = $1', [turn.id]);
  const row = () => app.sql('SELECT * FROM compliance_jobs WHERE id = $1', [turn.id]);
  const before = await row();
  const results = app.service.app.get(ResultsRepository);
  await app.service.app.get(Database).transaction((tx) => results.storeAnswer(tx, turn, { state, raw: {} }));
  await results.storeGone(turn, 1_000);
  await results.storeFault(turn, { code: 'platform-unreachable', waitMs: 1_000, failure: true });
  expect(await row()).toEqual(before);
});
