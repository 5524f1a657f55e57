import type { Schemas } from '../client/methods.js';
import { finishedSession } from './finished-session.js';
import { toneRecording } from './recording.js';
import { type Stage, tell, title } from './stage.js';

type Input = Schemas['CreateSessionRequest']['input'];

const CLIENT = 'C-1002';
/** A note template that simulator/contract.json names. */
const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const RECORDING_SECONDS = 20;
const TEXT = 'Came with better sleep. Went through the plan for the week; will call if the nights get worse.';

/** The EHR requests two sessions, one from a provider's text and one from a recording, and launches a recorder. */
export async function createSessions(stage: Stage): Promise<void> {
  title(`The EHR requests two sessions with ${CLIENT}: one from text, one from a recording.`);
  const { ehr } = stage;
  const [provider = ''] =
    (await ehr.GET('/v1/clients/{externalId}', { params: { path: { externalId: CLIENT } } })).data.providers ?? [];
  await create(stage, provider, 'demo-text', { text: { text: TEXT } });
  const tone = new Blob([toneRecording(RECORDING_SECONDS)], { type: 'audio/wav' });
  const { data: recording } = await ehr.upload('/v1/recordings', tone);
  tell(`EHR       POST /v1/recordings: ${recording.bytes} bytes forwarded to the platform's store`);
  const input = { recording: { recordingUrls: [recording.url], recordingContent: 'Recording' as const } };
  await create(stage, provider, 'demo-recording', input);
  const launch = { provider, client: CLIENT, variant: 'in-person' } as const;
  const { url } = (await ehr.POST('/v1/recorder/launches', { body: launch })).data;
  tell(`EHR       POST /v1/recorder/launches: a URL on ${new URL(url).host} for the provider's browser, valid once`);
}

async function create(stage: Stage, provider: string, appointment: string, input: Input): Promise<void> {
  const wish = { provider, client: CLIENT, noteTemplateIds: [TEMPLATE], partnerAppointmentId: appointment, input };
  const { id, state } = (await stage.ehr.POST('/v1/sessions', { body: wish })).data;
  tell(`EHR       POST /v1/sessions (${appointment}): ${state}, /v1/sessions/${id}`);
  const { state: end, notesRevision } = await finishedSession(stage, appointment);
  tell(`EHR       GET /v1/sessions?appointment=${appointment}: ${end}, notes revision ${notesRevision}`);
}
