import { randomUUID } from 'node:crypto';
import { ResultsRepository } from '../src/compliance/results.repository.js';
import { Database } from '../src/database/database.js';
import { type RequestsApp, startRequestsApp } from './support/session-requests-app.js';

let app: RequestsApp;

beforeAll(async () => {
  app = await startRequestsApp();
});

afterAll(() => app?.close());

test.each(['unknown', 'running'] as const)(
  'a look-up (%s) that left before the end was heard gives no result: the job is looked up once more at once',
  async (state) => {
    const [id, jobId] = [randomUUID(), randomUUID()];
    const turn = { id, jobId, leaseToken: randomUUID(), state: 'Submitted', strikes: 0, refusedAt: null } as const;
    await app.sql(
      `INSERT INTO compliance_jobs (id, job_id, state, submitted_at, ended_at, lease_token, lease_until)
       VALUES ($1, $2, 'Completed', now(), now(), $3, now() + interval '1 minute')`,
      [id, jobId, turn.leaseToken],
    );
    const kept = await app.service.app.get(Database).transaction(async (tx) => {
      await app.service.app.get(ResultsRepository).storeAnswer(tx, turn, { state, raw: { of: 'before' } });
      const { rows } = await tx.query(
        'SELECT state, result, due_at <= clock_timestamp() AS due FROM compliance_jobs WHERE id = $1',
        [id],
      );
      return rows[0];
    });
    expect(kept).toEqual({ state: 'Completed', result: null, due: true });
  },
);
