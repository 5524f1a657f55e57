import { canary } from '../../harness/canaries.js';
import { until } from '../../harness/until.js';
import type { Simulator } from '../../simulator/app.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { PrivateEhr } from './ehr.js';

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const WAIT = { prefer: 'wait=10' };
const PDF = `%PDF-1.7\n1 0 obj\n<< /Title (${canary('PdfText')}) >>\nendobj\n`;

const asked = (appointment: string) => ({
  provider: 'p-1',
  client: 'c-1',
  noteTemplateIds: [TEMPLATE],
  input: { text: { text: `${canary('Dictated')} talked about the week` } },
  externalTreatmentPlan: `# ${canary('Plan')}`,
  partnerAppointmentId: appointment,
});

/** Ids and URLs that later requests need. */
export interface Clinical {
  readonly sessionId: string;
  readonly secrets: Record<string, string>;
}

/** Sessions, notes, recordings, recorder and compliance: successful and rejected requests. */
export async function driveClinical(ehr: PrivateEhr, simulator: Simulator): Promise<Clinical> {
  const { state } = simulator;
  const userOf = (id: string) => state.users.list().find(({ partnerUserId }) => partnerUserId === id)?.userId ?? '';
  for (const [n, fails] of [false, true].entries()) {
    const session = createSession(state, {
      providerUserId: userOf('p-1'),
      clientUserIds: [userOf('c-1')],
      noteTemplateIds: [TEMPLATE],
      input: { kind: 'text', text: canary('Typed') },
      date: '2026-03-01T09:00:00.000Z',
      partnerAppointmentId: `visit-${n}`,
    });
    session.willFail = fails;
    while (session.nextStep) takeStep(state, session);
  }
  const { id } = await ehr.get('POST', '/v1/sessions', {
    body: asked('asked-1'),
    headers: { ...WAIT, 'idempotency-key': canary('Idempotency') },
  });
  const made = await until('the platform has the change', () =>
    state.sessions.list().find(({ partnerAppointmentId }) => partnerAppointmentId === 'asked-1'),
  );
  while (made.nextStep) takeStep(state, made);
  await until('every session has ended', async () => {
    const { items } = await ehr.get<{ items: { state: string }[] }>('GET', '/v1/sessions');
    return items.length === 3 && items.every(({ state }) => ['Done', 'Error'].includes(state));
  });
  for (const [part, accept] of PARTS) await ehr.ask('GET', `/v1/sessions/${id}${part}`, { headers: { accept } });
  for (const body of [
    { input: { text: canary('Amended') } },
    { externalTreatmentPlan: canary('NewPlan') },
    { externalTreatmentPlan: [canary('PlanList')] },
    { input: { text: canary('Amended') }, noteTemplateIds: [canary('Template')] },
  ]) {
    await ehr.ask('PATCH', `/v1/sessions/${id}`, { body });
  }
  for (const change of [
    { client: canary('Client') },
    { date: canary('Date') },
    { input: { text: canary('Bare') } },
    { sessionType: canary('Type') },
  ]) {
    await ehr.ask('POST', '/v1/sessions', { body: { ...asked('asked-2'), ...change } });
  }
  const secrets = await driveFiles(ehr);
  return { sessionId: id, secrets };
}

const PARTS: [part: string, accept: string][] = [
  ['', 'application/json'],
  ['/notes', 'application/json'],
  ['/notes', 'text/markdown'],
  ['/notes', 'application/fhir+json'],
  ['/notes', canary('Accept')],
  ['/transcript', 'application/json'],
  ['/insights', 'application/json'],
  ['/recording-url', 'application/json'],
];

async function driveFiles(ehr: PrivateEhr): Promise<Record<string, string>> {
  await ehr.get('POST', '/v1/recordings', { body: canary('Recording').repeat(500), type: 'audio/wav' });
  const { uploadUrl } = await ehr.get<{ uploadUrl: string }>('POST', '/v1/recordings/upload-url', {
    body: { contentType: 'audio/wav', size: 10 },
  });
  await ehr.ask('POST', '/v1/recordings/upload-url', { body: { contentType: canary('ContentType') } });
  const launch = {
    provider: 'p-1',
    client: 'c-1',
    variant: 'virtual',
    redirectUrl: `https://ehr.example/back?patient=${canary('Redirect')}`,
  };
  const { url } = await ehr.get<{ url: string }>('POST', '/v1/recorder/launches', { body: launch });
  await ehr.get('POST', '/v1/recorder/recoveries', { body: { provider: 'p-1' } });
  for (const redirectUrl of [`https://evil.example/${canary('Elsewhere')}`, canary('NoUrl')]) {
    await ehr.ask('POST', '/v1/recorder/launches', { body: { ...launch, redirectUrl } });
  }
  await ehr.ask('POST', '/v1/compliance/jobs', { body: formOf(['files', PDF], ['files', PDF]), headers: WAIT });
  for (const parts of [
    [['files', canary('NoPdf')]],
    [
      ['files', PDF],
      ['criteria', canary('Criterion')],
    ],
    [
      ['files', PDF],
      [canary('Field'), 'x'],
    ],
  ] as [string, string][][]) {
    await ehr.ask('POST', '/v1/compliance/jobs', { body: formOf(...parts), headers: WAIT });
  }
  await ehr.ask('POST', '/v1/compliance/jobs', {
    body: { files: [{ id: canary('FileId'), url: `https://evil.example/${canary('FileUrl')}` }] },
  });
  const tokenOf = (address: string, name: string) => new URL(address).searchParams.get(name) ?? '';
  return { 'recorder token': tokenOf(url, 'sessionToken'), 'upload token': tokenOf(uploadUrl, 'token') };
}

function formOf(...parts: [name: string, content: string][]): FormData {
  const form = new FormData();
  for (const [name, content] of parts) {
    if (name === 'files')
      form.append(name, new Blob([content], { type: 'application/pdf' }), `${canary('PdfName')}.pdf`);
    else form.append(name, content);
  }
  return form;
}

/** Compliance results, and webhooks of every kind, including some of unknown types. */
export async function driveWebhooks(ehr: PrivateEhr, simulator: Simulator): Promise<void> {
  const { state } = simulator;
  for (const job of state.complianceJobs.values()) job.status = 'completed';
  for (const jobId of state.complianceJobs.keys()) {
    state.deliveries.send({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId } });
  }
  const extra = { note: canary('EventExtra') };
  for (const event of [
    { eventType: 'SESSION_CREATED', sessionId: 's-9', providerUserId: 'u-9', ...extra },
    {
      eventType: 'SESSION_PROCESSING_FAILED',
      sessionId: 's-9',
      errorCode: canary('EventCode'),
      error: { code: canary('EventCode'), message: canary('EventMessage') },
    },
    { eventType: 'SMART_EDIT_JOB_FAILED', payload: { jobId: 'j-1', reason: canary('EditReason') } },
    { eventType: 'COMPLIANCE_JOB_FAILED', payload: { jobId: 'j-2', reason: canary('JobReason') } },
    { eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload: { processingId: 'x-1', notes: canary('EventNotes') } },
    { eventType: 'USER_CREATED', payload: { userId: 'u-8', role: 'Client', externalUserId: 'c-8', email: person8 } },
    { eventType: 'USER_CREATED', payload: { userId: 'u-7', role: canary('Role') } },
    { eventType: `${canary('EventType')} of nobody`, payload: extra },
    { eventType: { a: canary('EventType') } },
    { eventType: 'SESSION_CREATED', sessionId: [canary('SessionList')] },
    extra,
    [extra],
  ]) {
    await ehr.webhook(JSON.stringify(event));
  }
  await ehr.webhook(`{"eventType": "${canary('EventBroken')}`);
  await ehr.webhook(canary('EventText'));
  await ehr.webhook(JSON.stringify(extra), canary('Signature'));
  await ehr.webhook(JSON.stringify(extra), '0'.repeat(64));
  await state.deliveries.settled();
  await until('no delivery is pending', async () => {
    const { items } = await ehr.get<{ items: { id: string }[] }>('GET', '/v1/webhook-deliveries?state=received');
    return items.length === 0;
  });
  const { items } = await ehr.get<{ items: { id: string }[] }>('GET', '/v1/webhook-deliveries?limit=200');
  for (const { id } of items.slice(0, 20)) {
    await ehr.ask('GET', `/v1/webhook-deliveries/${id}`);
    await ehr.ask('POST', `/v1/webhook-deliveries/${id}/replay`);
  }
}

const person8 = `${canary('EventMail')}@clinic.example`;
