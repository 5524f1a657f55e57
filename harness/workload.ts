import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Simulator } from '../simulator/app.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import type { FeedEventResponse } from '../src/feed/feed.dto.js';
import type { Page } from '../src/http/request/page.js';
import type { ImportResponse } from '../src/imports/api/import-view.js';
import type { SessionResponse } from '../src/sessions/model/session-view.js';
import type { Service } from './service.js';
import { until } from './until.js';

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const PDF = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';

/** The service and simulator under a workload. */
export interface Target {
  readonly service: Service;
  readonly simulator: Simulator;
  readonly database: Pick<pg.ClientBase, 'query'>;
  readonly adminKey: string;
}

/**
 * A day of typical use, until all its work is done.
 *
 * @param day prefix of its external ids
 */
export async function runWorkload(target: Target, day: string, people: number, sessions: number): Promise<void> {
  const { service, simulator, database } = target;
  const { state } = simulator;
  state.settings = { ...state.settings, webhookUrl: `${service.url}/webhooks/platform` };
  await mirrorPeople(service, day, people);
  await holdSessions(target, day, sessions);
  await checkDocuments(target);
  await state.deliveries.settled();
  for (const what of [
    'webhook_deliveries WHERE due_at IS NOT NULL',
    'sessions WHERE due_at < now()',
    'people WHERE due_at IS NOT NULL',
  ]) {
    await until(`no row of ${what} is left`, async () => {
      return (await database.query(`SELECT 1 FROM ${what} LIMIT 1`)).rowCount === 0;
    });
  }
}

async function mirrorPeople(service: Service, day: string, people: number): Promise<void> {
  const ids = Array.from({ length: people }, (_, n) => `${day}-${n}`);
  const providers = ids.map((id) => `p-${id},p-${id}@example.org,Pia,N${id}`);
  const clients = ids.map((id) => `c-${id},c-${id}@example.org,Cleo,N${id},p-${id}`);
  const csv = (name: string, lines: string[]) => ({ name, type: 'text/csv', content: lines.join('\n') });
  const files = [
    csv('providers.csv', ['externalId,email,firstName,lastName', ...providers]),
    csv('clients.csv', ['externalId,email,firstName,lastName,providers', ...clients, 'c-wrong,no mail,C,W,p-0']),
  ];
  const { id } = await service.startImport('kind=clients', files);
  assert.equal((await service.importEnded(id)).state, 'completed');
  const read = async (path: string) => service.call<Page<unknown>>('GET', path);
  await read(`/v1/imports/${id}`);
  await read(`/v1/imports/${id}/rows?outcome=rejected`);
  await read('/v1/imports');
  const dry = await service.startImport('kind=clients&dryRun=true', files);
  await until('the import is planned', async () => {
    return (await service.call<ImportResponse>('GET', `/v1/imports/${dry.id}`, { wait: 1 })).body.state === 'planned';
  });
  await service.call('POST', `/v1/imports/${dry.id}/cancel`);

  const person = (id: string) => ({ email: `${id}@example.org`, firstName: 'Ada', lastName: 'Osei' });
  await service.call('PUT', `/v1/providers/p-${day}`, { body: person(`p-${day}`), wait: 20 });
  const client = { ...person(`c-${day}`), providers: [`p-${day}`] };
  await service.call('PUT', `/v1/clients/c-${day}`, { body: client, wait: 20 });
  await service.call('PUT', `/v1/clients/c-${day}/providers`, { body: { providers: [`p-${day}-1`] }, wait: 20 });
  await service.call('DELETE', `/v1/clients/c-${day}-3`, { wait: 20 });
  await service.call('GET', `/v1/clients/c-${day}`);
  for (const list of [
    'clients?limit=20',
    'clients?state=failed',
    'clients?state=synced&limit=20',
    'providers?limit=20',
    'people/unknown-to-ehr',
  ]) {
    await read(`/v1/${list}`);
  }
  await service.call('POST', '/v1/people/search', { body: { email: `c-${day}-1@example.org` } });
  for (const text of [`c-${day}-1@example.org`, randomUUID(), '42'])
    await service.call('POST', '/v1/search', { body: { text } });
  await service.call('POST', '/v1/people/trace', { body: { kind: 'client', externalId: `c-${day}-1` } });
}

async function holdSessions({ service, simulator }: Target, day: string, sessions: number): Promise<void> {
  const { state } = simulator;
  const userOf = (id: string) => state.users.list().find(({ partnerUserId }) => partnerUserId === id)?.userId;
  for (let n = 0; n < sessions; n++) {
    const session = createSession(state, {
      providerUserId: userOf(`p-${day}-${n % 20}`) ?? 'not-mirrored-yet',
      clientUserIds: [userOf(`c-${day}-${n % 20}`) ?? []].flat(),
      noteTemplateIds: [TEMPLATE],
      input: { kind: 'text', text: 'We talked about the week.' },
      date: '2026-03-01T09:00:00.000Z',
      partnerAppointmentId: `visit-${day}-${n}`,
    });
    session.willFail = n % 10 === 9;
    while (session.nextStep) takeStep(state, session);
  }
  const input = { text: { text: 'We talked about the week.' } };
  const body = {
    provider: `p-${day}-1`,
    noteTemplateIds: [TEMPLATE],
    input,
    partnerAppointmentId: `asked-${day}`,
  };
  const asked = await service.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 20, idempotencyKey: day });
  assert.ok([200, 201, 202].includes(asked.status), `POST /v1/sessions returned ${asked.status}`);
  const made = await until('the platform has the session', () =>
    state.sessions.list().find(({ partnerAppointmentId }) => partnerAppointmentId === body.partnerAppointmentId),
  );
  while (made.nextStep) takeStep(state, made);
  await until('the session is done', async () => {
    const { body: view } = await service.call<SessionResponse>('GET', `/v1/sessions/${asked.body.id}`);
    return view.state === 'Done';
  });
  for (const part of ['', '/timeline', '/notes', '/transcript', '/insights']) {
    await service.call('GET', `/v1/sessions/${asked.body.id}${part}`);
  }
  await service.call('GET', `/v1/sessions/${made.sessionId}`);
  const first = await service.call<Page<SessionResponse>>('GET', '/v1/sessions?limit=5');
  await service.call('GET', `/v1/sessions?limit=5&cursor=${first.body.nextCursor}`);
  const update = { partnerAppointmentId: `moved-${day}` };
  await service.call('PATCH', `/v1/sessions/${asked.body.id}`, { body: update });
  await service.call('POST', '/v1/sessions/refreshes', { body: { session: asked.body.id } });
  await service.call('GET', '/v1/sessions/refreshes');
  for (const query of [
    '',
    `provider=p-${day}-1`,
    `client=c-${day}-1`,
    'state=Error',
    'state=Unknown',
    'state=Rejected',
    `provider=p-${day}-1&state=Error`,
    `client=c-${day}-1&updatedSince=1970-01-01T00:00:00.000Z`,
    `appointment=visit-${day}-1`,
    `updatedSince=${new Date().toISOString()}`,
  ]) {
    await service.call('GET', `/v1/sessions?${query}`);
  }
  // Searches without a client need notes of all sessions: test/fhir/search-plans.world-spec.ts has them.
  await service.call('GET', `/fhir/DocumentReference?_count=5&patient.identifier=c-${day}-1&date=ge2000`);
}

async function checkDocuments({ service, simulator, adminKey }: Target): Promise<void> {
  const { state } = simulator;
  const form = new FormData();
  form.append('files', new Blob([PDF], { type: 'application/pdf' }), 'notes.pdf');
  const headers = { authorization: `Bearer ${adminKey}` };
  // Repeated while the database is too busy, as callers should.
  await until('the job is submitted', async () => {
    const answer = await fetch(`${service.url}/v1/compliance/jobs`, { method: 'POST', headers, body: form });
    await answer.text();
    return answer.status === 201;
  });
  for (const job of state.complianceJobs.values()) job.status = 'completed';
  for (const jobId of state.complianceJobs.keys()) {
    state.deliveries.send({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId } });
  }
  await service.call('GET', '/v1/compliance/jobs');
  await service.call('GET', '/v1/compliance/jobs?state=Unknown');
}

/** Reads the feed, the deliveries, the audit log, health and metrics. */
export async function readAsOperator({ service, adminKey }: Target): Promise<void> {
  const { body } = await service.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=5');
  const after = `after=${body.items.at(-1)?.cursor}`;
  for (const filter of [
    '',
    '&types=session.failed',
    '&subject=clients/c-b-1',
    '&subject=clients/c-b-1&types=session.failed',
  ])
    await service.call('GET', `/v1/events?${after}${filter}`);
  await service.call('GET', '/v1/webhook-deliveries');
  await service.call('GET', '/v1/webhook-deliveries?state=failed');
  await service.call('GET', '/v1/clients/c-b-1/disclosures');
  for (const query of [
    '',
    'client=c-1',
    'session=s-1',
    'subject=c-1',
    'client=c-b-1&provider=p-b-1&after=2020-01-01',
    'keyId=none',
    'action=none',
    'after=2020-01-01',
  ]) {
    await service.call('GET', `/v1/audit?${query}`);
  }
  await service.call('GET', '/v1/api-keys');
  await service.call('GET', '/health/ready');
  await service.call('GET', '/v1/overview');
  const metrics = await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } });
  assert.equal(metrics.status, 200);
}
