import { randomUUID } from 'node:crypto';
import { Database } from '../src/database/database.js';
import type { CallStep } from '../src/people/next-step.js';
import { PeopleRepository } from '../src/people/people.repository.js';
import { SettleRepository } from '../src/people/settle.repository.js';
import { type RequestsApp, startRequestsApp } from './support/session-requests-app.js';

let app: RequestsApp;

beforeAll(async () => {
  app = await startRequestsApp();
});

afterAll(() => app?.close());

test('an answer that comes when somebody else has taken the person over changes nothing of the person', async () => {
  const { service, sql } = app;
  const known = () =>
    sql(`SELECT platform_user_id, providers_known, applied_providers, fault, review, strikes, lease_token
         FROM people WHERE kind = 'client' AND external_id = 'c-1'`);
  await sql(`UPDATE people SET lease_token = $1, lease_until = now() + interval '1 minute' WHERE external_id = 'c-1'`, [
    randomUUID(),
  ]);
  const before = await known();
  const row = await service.app.get(PeopleRepository).find(service.app.get(Database).pool, 'client', 'c-1');
  if (!row) throw new Error('The client is not there.');
  const step: CallStep = { do: 'call', operation: 'setClientProviders', state: 'pending', notBefore: null };
  for (const [operation, answer] of [
    ['setClientProviders', { kind: 'applied' }],
    ['setClientProviders', { kind: 'not-found' }],
    ['deleteUser', { kind: 'deleted' }],
    ['checkUser', { kind: 'unreachable' }],
  ] as const) {
    await service.app.get(SettleRepository).settle(
      {
        row,
        step: { ...step, operation, providerUserIds: ['of-before'] },
        grant: { id: '0', grantedAt: new Date() },
        lease: randomUUID(),
        sendBeforeMs: 0,
      },
      {
        answer,
        outcome: { outcome: answer.kind, status: 200, durationMs: 1, reached: true },
        errorCode: null,
        errorText: null,
        inviteUrl: null,
      },
    );
  }
  expect(await known()).toEqual(before);
});
