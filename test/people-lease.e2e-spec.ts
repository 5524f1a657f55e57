import { randomUUID } from 'node:crypto';
import type { CallStep } from '../src/people/model/next-step.js';
import { CallResultsRepository } from '../src/people/reconcile/results.repository.js';
import { PeopleRepository } from '../src/people/store/people.repository.js';
import { type RequestsApp, startRequestsApp } from './support/session-requests-app.js';

let app: RequestsApp;

beforeAll(async () => {
  app = await startRequestsApp();
});

afterAll(() => app?.close());

test('an answer that comes when somebody else has taken the person over changes nothing of the person', async () => {
  const { service, sql } = app;
  const known = () =>
    sql(`SELECT platform_user_id, providers_known, applied_providers, fault, review, failures, lease_owner, lease_no
         FROM people WHERE kind = 'client' AND external_id = 'c-1'`);
  const owner = randomUUID();
  await sql(`UPDATE people SET lease_owner = $1, lease_no = 7, lease_safe_at = now() WHERE external_id = 'c-1'`, [
    owner,
  ]);
  const before = await known();
  const row = await service.app.get(PeopleRepository).find({ kind: 'client', externalId: 'c-1' });
  if (!row) throw new Error('The client is not there.');
  const step: CallStep = { do: 'call', operation: 'setClientProviders', state: 'pending', notBefore: null };
  // Whoever lost the lease to another process, and whoever leased it to itself once more.
  const anothers = { key: row.id, owner: randomUUID(), no: 7 };
  const former = { key: row.id, owner, no: 6 };
  for (const [operation, answer, lease] of [
    ['setClientProviders', { kind: 'applied' }, anothers],
    ['setClientProviders', { kind: 'not-found' }, former],
    ['deleteUser', { kind: 'deleted' }, anothers],
    ['deleteUser', { kind: 'deleted' }, former],
    ['checkUser', { kind: 'unreachable' }, former],
  ] as const) {
    await service.app.get(CallResultsRepository).record(
      {
        row,
        step: { ...step, operation, providerUserIds: ['of-before'] },
        grant: { id: '0', grantedAt: new Date() },
        lease,
        sendBeforeMs: 0,
      },
      {
        answer,
        outcome: { outcome: answer.kind, status: 200, durationMs: 1, reached: true },
      },
    );
  }
  expect(await known()).toEqual(before);
});
