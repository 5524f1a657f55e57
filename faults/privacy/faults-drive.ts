import { canary } from '../../harness/canaries.js';
import { until } from '../../harness/until.js';
import type { Clinical } from './clinical-drive.js';
import type { PrivateEhr } from './ehr.js';
import { person } from './people-drive.js';
import type { TalkingPlatform, Words } from './talking-platform.js';

const html = { 'content-type': 'text/html' };
const messageAbout = (name: string) => `${canary(name)} is registered already`;

/** Rejections by the platform, each with a message that names a person. */
const REFUSALS: readonly Words[] = [
  { status: 400, body: JSON.stringify({ message: messageAbout('Message') }) },
  { status: 400, headers: { 'content-type': 'text/plain' }, body: messageAbout('PlainText') },
  { status: 409, body: JSON.stringify({ errors: [{ detail: messageAbout('Detail'), field: canary('Field') }] }) },
  { status: 422, body: JSON.stringify({ title: messageAbout('Title'), [canary('Key')]: 1 }) },
  { status: 404, body: JSON.stringify({ error: messageAbout('NotFound') }) },
];

/** Answers that leave it open whether a call took effect. */
const UNCLEAR: readonly Words[] = [
  { status: 500, headers: html, body: `<h1>${canary('Page')}</h1>` },
  { status: 200, body: `{"userId": "${canary('CutShort')}` },
  {
    status: 200,
    body: JSON.stringify({
      userId: { id: canary('Shape') },
      isUserExists: canary('Flag'),
      sessionId: [canary('Shape')],
    }),
  },
  { status: 502, headers: { 'retry-after': canary('RetryAfter') }, body: canary('Gateway') },
  { status: 200, afterMs: 1_500, body: JSON.stringify({ message: canary('Late') }) },
];

/** Answers after which the service pauses the operation. */
const STOPPING: readonly Words[] = [
  { status: 302, headers: { location: `https://evil.example/${canary('Location')}` }, body: '' },
  { status: 429, headers: { 'retry-after': '1' }, body: JSON.stringify({ message: canary('Patience') }) },
  { status: 403, body: JSON.stringify({ message: canary('Forbidden') }) },
];

/** The platform rejects every call, with messages that name people. */
export async function drivePlatformWords(
  ehr: PrivateEhr,
  platform: TalkingPlatform,
  clinical: Clinical,
): Promise<void> {
  await refusedMirroring(ehr, platform);
  for (const words of [...REFUSALS, ...UNCLEAR, ...STOPPING]) {
    for (const [method, path, ask] of callsOf(ehr, clinical)) {
      platform.say(method, path, words);
      await ask();
    }
  }
}

/** Calls to the platform that a caller waits for, each with the request that causes it. */
function callsOf(
  ehr: PrivateEhr,
  { sessionId }: Clinical,
): [method: string, path: RegExp, ask: () => Promise<unknown>][] {
  const session = {
    provider: 'p-1',
    noteTemplateIds: ['11111111-1111-4111-8111-111111111111'],
    input: { text: { text: canary('Unsent') } },
  };
  const pdf = new FormData();
  pdf.append('files', new Blob(['%PDF-1.7\n'], { type: 'application/pdf' }), 'a.pdf');
  const launch = { provider: 'p-1', client: 'c-1', variant: 'virtual' };
  return [
    [
      'PATCH',
      /therapy-session/,
      () => ehr.ask('PATCH', `/v1/sessions/${sessionId}`, { body: { externalTreatmentPlan: canary('Unsent') } }),
    ],
    [
      'PUT',
      /note-templates/,
      () =>
        ehr.ask('PUT', `/v1/sessions/${sessionId}/note-templates`, {
          body: { noteTemplateIds: session.noteTemplateIds },
        }),
    ],
    [
      'POST',
      /therapy-session$/,
      () => ehr.ask('POST', '/v1/sessions', { body: { ...session, partnerAppointmentId: crypto.randomUUID() } }),
    ],
    ['GET', /therapy-session/, () => ehr.ask('GET', `/v1/sessions/${sessionId}/recording-url`)],
    ['POST', /recording-url/, () => ehr.ask('POST', '/v1/recordings/upload-url', { body: {} })],
    ['PUT', /uploads/, () => ehr.ask('POST', '/v1/recordings', { body: canary('Lost'), type: 'audio/wav' })],
    ['POST', /initiate-auth/, () => ehr.ask('POST', '/v1/recorder/launches', { body: launch })],
    ['GET', /upload-url/, () => ehr.ask('POST', '/v1/compliance/upload-url', { body: {} })],
    ['POST', /compliance\/job$/, () => ehr.ask('POST', '/v1/compliance/jobs', { body: pdf })],
  ];
}

/** Few outcomes are unknown: after three such creates in a row, the next one would wait. */
const OF_MIRRORING = [...REFUSALS.slice(0, 4), ...UNCLEAR.slice(0, 2)];

async function refusedMirroring(ehr: PrivateEhr, platform: TalkingPlatform): Promise<void> {
  const calls: [path: RegExp, person: string, more: object][] = [
    [/users\/check/, 'providers/p-check', {}],
    [/users\/providers$/, 'providers/p-create', {}],
    [/users\/clients$/, 'clients/c-create', { providers: ['p-1'] }],
  ];
  for (const [path, where, more] of calls) {
    platform.say('POST', path, ...OF_MIRRORING);
    for (const n of OF_MIRRORING.keys()) {
      await ehr.ask('PUT', `/v1/${where}-${n}`, {
        body: { ...person(`Refused${n}`), email: `${canary(`Refused${n}`)}@${path.source.length}.example`, ...more },
      });
    }
  }
  await until('the platform has sent its messages', () => platform.left() === 0);
}

/** The database rejects every write, with a message that names a person. */
export async function driveRefusedWrites(ehr: PrivateEhr, sql: (text: string) => Promise<unknown>): Promise<void> {
  const tables = [
    'people',
    'imports',
    'import_rows',
    'idempotency_records',
    'webhook_deliveries',
    'sessions',
    'compliance_jobs',
    'feed_events',
    'api_keys',
  ];
  // In two parts, so that the text of this function does not count as a find.
  await sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '%', 'Zeisig' || 'q7Database ' || NEW::text
      USING DETAIL = 'Zeisig' || 'q7RowDetail', HINT = 'Zeisig' || 'q7RowHint'; END $$`);
  for (const table of tables) {
    await sql(`CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse()`);
  }
  const body = { ...person('Refused'), providers: ['p-1'] };
  const line = { body: `externalId,email,firstName,lastName\nc-60,${person('Refused').email},A,B`, type: 'text/csv' };
  const text = {
    provider: 'p-1',
    noteTemplateIds: ['11111111-1111-4111-8111-111111111111'],
    input: { text: { text: canary('Unkept') } },
  };
  await ehr.ask('PUT', '/v1/clients/c-60', { body });
  await ehr.ask('DELETE', '/v1/clients/c-1');
  await ehr.ask('POST', '/v1/imports?kind=providers', line);
  await ehr.ask('POST', '/v1/sessions', { body: text });
  await ehr.ask('POST', '/v1/sessions', { body: text, headers: { 'idempotency-key': canary('Unkept') } });
  await ehr.ask('POST', '/v1/api-keys', { body: { name: 'x', scopes: ['imports'] } });
  await ehr.ask('POST', '/v1/recorder/launches', { body: { provider: 'p-1', client: 'c-1', variant: 'virtual' } });
  await ehr.webhook(JSON.stringify({ eventType: 'SESSION_CREATED', sessionId: 's-60', note: canary('Unkept') }));
  for (const table of tables) await sql(`DROP TRIGGER refuse ON ${table}`);
}
