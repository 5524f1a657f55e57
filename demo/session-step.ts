import { finishedSession } from './finished-session.js';
import { type Stage, tell, title } from './stage.js';

const CLIENT = 'C-1015';
const APPOINTMENT = 'demo-appointment-1';
const NOTE_LINES = 8;

/** Runs a session on the platform; its webhooks arrive, and the EHR reads the notes. */
export async function readNotes(stage: Stage): Promise<void> {
  title(`A session with ${CLIENT} takes place on the platform.`);
  const { ehr, platform } = stage;
  const client = (await ehr.GET('/v1/clients/{externalId}', { params: { path: { externalId: CLIENT } } })).data;
  const externalId = client.providers?.[0] ?? '';
  const provider = (await ehr.GET('/v1/providers/{externalId}', { params: { path: { externalId } } })).data;
  await platform.startSession({
    providerUserId: provider.platformUserId,
    clientUserId: client.platformUserId,
    sessionType: 'Soap',
    partnerAppointmentId: APPOINTMENT,
    input: { text: { text: 'Slept better this week. Practised the breathing exercise before the exam.' } },
  });
  const session = await finishedSession(stage, APPOINTMENT);
  tell(`webhooks  ${(await eventTypes(stage)).join(', ')}`);
  tell(`EHR       GET /v1/sessions?appointment=${APPOINTMENT}: ${session.state}, provider ${session.provider}`);
  tell(`EHR       GET /v1/sessions/${session.id}/notes, as Markdown:`);
  const { data: notes } = await ehr.GET('/v1/sessions/{id}/notes', {
    params: { path: { id: session.id } },
    headers: { accept: 'text/markdown' },
    parseAs: 'text',
  });
  const lines = notes.split('\n').filter((line) => line.trim() !== '');
  tell(...lines.slice(0, NOTE_LINES).map((line) => `          ${line}`));
}

async function eventTypes({ ehr }: Stage): Promise<string[]> {
  const { items } = (await ehr.GET('/v1/webhook-deliveries')).data;
  return items.flatMap(({ eventType }) => (eventType?.startsWith('SESSION_') ? [eventType] : [])).reverse();
}
