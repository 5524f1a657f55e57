import { randomUUID } from 'node:crypto';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { ComplianceJobResponse } from '../../src/compliance/compliance.dto.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { ADMIN_KEY } from './app.js';
import type { Mirror } from './service.js';
import { answerTo } from './webhook-requests.js';

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const PDF = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';

/** One call of each kind of activation. */
const OPERATIONS = [
  'createProvider',
  'createSession',
  'getSession',
  'getProcessingSession',
  'submitComplianceJob',
  'getComplianceJob',
];

/** Work of every kind, under way. */
interface HeldWork {
  /** Waits until all of it came to its end; the platform must have answered (`mirror.release()`). */
  ended(): Promise<void>;
}

/**
 * Brings one activation of each kind to the middle of its call, which the platform holds back.
 *
 * @param mirror of a platform without steps of its own (`stepMs` 0), with provider `therapist` mirrored
 * @param name tells this round's ids from another's
 */
export async function holdEveryKind(mirror: Mirror, service: Service, name: string): Promise<HeldWork> {
  const { state } = mirror.simulator;
  const sessionId = newSession(mirror);
  const processingId = state.sessions.find(newSession(mirror))?.processingId ?? '';
  const jobId = randomUUID();
  state.complianceJobs.set(jobId, { jobId, files: [], criteria: [], status: 'completed', willFail: false });
  const before = new Map(OPERATIONS.map((operation) => [operation, mirror.arrivals(operation)]));
  for (const operation of OPERATIONS) mirror.hold({ operation });

  const content = `externalId,email,firstName,lastName\n${name},${name}@example.org,Pia,Ruiz`;
  await service.startImport('kind=providers', [{ name: 'providers.csv', type: 'text/csv', content }]);
  const input = { text: { text: 'They spoke of the week.' } };
  const body = { provider: 'therapist', noteTemplateIds: [TEMPLATE], input, partnerAppointmentId: name };
  const asked = await service.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 0 });
  const submitted = submit(service);
  const session = state.sessions.find(sessionId);
  while (session?.nextStep) takeStep(state, session);
  state.deliveries.send({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId } });
  state.deliveries.send({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId } });
  await until('each kind of work is in the middle of its call', () =>
    OPERATIONS.every((operation) => mirror.arrivals(operation) > (before.get(operation) ?? 0)),
  );

  const has = async (what: string, value: unknown) => (await mirror.sql(`SELECT 1 FROM ${what}`, [value])).length > 0;
  return {
    async ended() {
      const mine = (await submitted).id;
      const waits: [string, () => Promise<boolean>][] = [
        ['the person is mirrored', () => has(`people WHERE external_id = $1 AND state = 'synced'`, name)],
        ['the request is settled', () => has('sessions WHERE id = $1 AND session_id IS NOT NULL', asked.body.id)],
        ['the notes are there', () => has('sessions WHERE session_id = $1 AND notes_revision > 0', sessionId)],
        [
          'the processing is known',
          () => has('processing_sessions WHERE processing_id = $1 AND session IS NOT NULL', processingId),
        ],
        ['the job is submitted', () => has('compliance_jobs WHERE id = $1 AND job_id IS NOT NULL', mine)],
        ['the result is there', () => has('compliance_jobs WHERE job_id = $1 AND result IS NOT NULL', jobId)],
      ];
      for (const [what, isSo] of waits) await until(what, isSo);
    },
  };
}

function newSession({ simulator }: Mirror): string {
  const session = createSession(simulator.state, {
    providerUserId: 'p',
    clientUserIds: [],
    noteTemplateIds: [TEMPLATE],
    input: { kind: 'text', text: 'They spoke of the week.' },
    date: '2026-03-01T09:00:00.000Z',
  });
  return session.sessionId;
}

async function submit(service: Service): Promise<ComplianceJobResponse> {
  const form = new FormData();
  form.append('files', new Blob([PDF], { type: 'application/pdf' }), 'notes.pdf');
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, prefer: 'wait=0' };
  const answer = await answerTo(`${service.url}/v1/compliance/jobs`, { method: 'POST', headers, body: form });
  return (await answer.json()) as ComplianceJobResponse;
}
