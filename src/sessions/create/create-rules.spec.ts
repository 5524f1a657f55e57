import { validationPipe } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import { CLIENT_PRONOUNS, RECORDING_CONTENTS, SESSION_TYPES } from '../../platform/contract/wire-types.js';
import { createFault } from './create-rules.js';
import { CREATE_EXAMPLES, CreateSessionRequest } from './create-session.dto.js';

const usual = {
  provider: 'p-1',
  noteTemplateIds: ['t-1'],
  input: { text: { text: 'What was said.' } },
};
const urls = ['https://files.example.org/1.wav', 'https://files.example.org/2.wav'];
const recording = { recordingUrls: urls, recordingContent: 'Recording' };

/** Status and pointer of the refusal of a body; undefined when it is acceptable. */
async function judge(body: unknown, privateHostsAllowed = false): Promise<[number, string | undefined] | undefined> {
  try {
    const dto = await validationPipe().transform(body, { type: 'body', metatype: CreateSessionRequest });
    const fault = createFault(dto, { privateHostsAllowed });
    if (!fault) return undefined;
    throw fault;
  } catch (refusal) {
    if (!(refusal instanceof Problem)) throw refusal;
    return [refusal.status, refusal.more.pointer];
  }
}

const { noteTemplateIds: _, ...formless } = usual;
const { provider: __, ...nobody } = usual;
const { input: ___, ...mute } = usual;

describe('a create request may be sent', () => {
  it.each<[string, object]>([
    ['form B, from a text', usual],
    ['form B, several templates', { ...usual, noteTemplateIds: ['t-1', 't-2'] }],
    ['form A, by session type', { ...formless, sessionType: 'Soap' }],
    ['from a recording', { ...usual, input: { recording } }],
    ['with a client', { ...usual, client: 'c-1' }],
    ['with pronouns and no client', { ...usual, clientPronouns: 'NeutralThem' }],
    ['with a date in Universal Time', { ...usual, date: '2026-01-31T08:00:00Z' }],
    ['with a date in another zone', { ...usual, date: '2026-01-31T08:00:00.123+01:00' }],
    ['with an appointment', { ...usual, partnerAppointmentId: 'visit 17/2026' }],
    ['with a plan of 100,000 characters', { ...usual, externalTreatmentPlan: 'x'.repeat(100_000) }],
    ['with a plan of 100,000 characters of two code units', { ...usual, externalTreatmentPlan: '😀'.repeat(100_000) }],
    [
      'with null for whatever is optional',
      {
        ...usual,
        client: null,
        clientPronouns: null,
        sessionType: null,
        date: null,
        partnerAppointmentId: null,
        externalTreatmentPlan: null,
        input: { ...usual.input, recording: null },
      },
    ],
  ])('%s', async (_name, body) => {
    expect(await judge(body)).toBeUndefined();
  });
});

it.each(Object.entries(CREATE_EXAMPLES))('the example of OpenAPI may be sent: %s', async (_name, { value }) => {
  expect(await judge(value)).toBeUndefined();
});

describe('each value of a list of the spec is taken', () => {
  const supported = SESSION_TYPES.filter((type) => !type.startsWith('Couple'));

  it.each(supported)('sessionType %s', async (sessionType) => {
    expect(await judge({ ...formless, sessionType })).toBeUndefined();
  });

  it.each(CLIENT_PRONOUNS)('clientPronouns %s', async (clientPronouns) => {
    expect(await judge({ ...usual, clientPronouns })).toBeUndefined();
  });

  it.each(RECORDING_CONTENTS)('recordingContent %s', async (recordingContent) => {
    expect(await judge({ ...usual, input: { recording: { ...recording, recordingContent } } })).toBeUndefined();
  });
});

describe('missing', () => {
  it.each<[string, unknown, string]>([
    ['provider', nobody, '/provider'],
    ['both noteTemplateIds and sessionType', formless, '/noteTemplateIds'],
    ['input', mute, '/input'],
    ['both recording and text', { ...usual, input: {} }, '/input'],
    ['input.text.text', { ...usual, input: { text: {} } }, '/input/text/text'],
    [
      'recordingUrls',
      { ...usual, input: { recording: { recordingContent: 'Recording' } } },
      '/input/recording/recordingUrls',
    ],
    [
      'recordingContent',
      { ...usual, input: { recording: { recordingUrls: urls } } },
      '/input/recording/recordingContent',
    ],
  ])('%s', async (_name, body, pointer) => {
    expect(await judge(body)).toEqual([400, pointer]);
  });
});

describe('wrong type', () => {
  it.each<[string, object, string]>([
    ['provider', { provider: 7 }, '/provider'],
    ['client', { client: ['c-1'] }, '/client'],
    ['clientPronouns', { clientPronouns: 1 }, '/clientPronouns'],
    ['sessionType', { sessionType: true }, '/sessionType'],
    ['noteTemplateIds', { noteTemplateIds: 't-1' }, '/noteTemplateIds'],
    ['noteTemplateIds, one of them', { noteTemplateIds: ['t-1', 2] }, '/noteTemplateIds'],
    ['input', { input: 'text' }, '/input'],
    ['input, a list', { input: [] }, '/input'],
    ['input.recording', { input: { recording: 'https://files.example.org/1.wav' } }, '/input/recording'],
    [
      'recordingUrls',
      { input: { recording: { ...recording, recordingUrls: urls[0] } } },
      '/input/recording/recordingUrls',
    ],
    [
      'recordingUrls, one of them',
      { input: { recording: { ...recording, recordingUrls: [1] } } },
      '/input/recording/recordingUrls',
    ],
    [
      'recordingContent',
      { input: { recording: { ...recording, recordingContent: 1 } } },
      '/input/recording/recordingContent',
    ],
    ['input.text, the text itself', { input: { text: 'What was said.' } }, '/input/text'],
    ['input.text.text', { input: { text: { text: 1 } } }, '/input/text/text'],
    ['date', { date: 1_767_225_600_000 }, '/date'],
    ['partnerAppointmentId', { partnerAppointmentId: 17 }, '/partnerAppointmentId'],
    ['externalTreatmentPlan', { externalTreatmentPlan: { goals: [] } }, '/externalTreatmentPlan'],
  ])('%s', async (_name, change, pointer) => {
    expect(await judge({ ...usual, ...change })).toEqual([400, pointer]);
  });
});

describe('out of range', () => {
  it.each<[string, object, string]>([
    ['provider is blank', { provider: '' }, '/provider'],
    ['clientPronouns is none of the three', { clientPronouns: 'Other' }, '/clientPronouns'],
    ['noteTemplateIds is empty', { noteTemplateIds: [] }, '/noteTemplateIds'],
    ['a template id is blank', { noteTemplateIds: [' '] }, '/noteTemplateIds'],
    ['sessionType is not listed', { noteTemplateIds: null, sessionType: 'soap' }, '/sessionType'],
    [
      'recordingUrls is empty',
      { input: { recording: { ...recording, recordingUrls: [] } } },
      '/input/recording/recordingUrls',
    ],
    [
      'recordingContent is neither of the two',
      { input: { recording: { ...recording, recordingContent: 'Audio' } } },
      '/input/recording/recordingContent',
    ],
    ['the text is blank', { input: { text: { text: ' \n' } } }, '/input/text/text'],
    ['the date is none', { date: 'yesterday' }, '/date'],
    ['the date does not exist', { date: '2026-02-30T08:00:00Z' }, '/date'],
    ['partnerAppointmentId is blank', { partnerAppointmentId: ' ' }, '/partnerAppointmentId'],
    ['partnerAppointmentId holds a NUL', { partnerAppointmentId: 'visit\0' }, '/partnerAppointmentId'],
    ['partnerAppointmentId looks like one of ours', { partnerAppointmentId: 'notebridge:1' }, '/partnerAppointmentId'],
    [
      'the plan has more than 100,000 characters',
      { externalTreatmentPlan: 'x'.repeat(100_001) },
      '/externalTreatmentPlan',
    ],
  ])('%s', async (_name, change, pointer) => {
    expect(await judge({ ...usual, ...change })).toEqual([400, pointer]);
  });

  it.each([
    'ftp://files.example.org/1.wav',
    'http://files.example.org/1.wav',
    'https://127.0.0.1/1.wav',
    'recording 1',
  ])('a recording at %s is not allowed', async (url) => {
    const input = { recording: { ...recording, recordingUrls: [...urls, url] } };
    expect(await judge({ ...usual, input })).toEqual([422, '/input/recording/recordingUrls/2']);
  });

  it('a recording on one’s own network may be named where that is allowed', async () => {
    const input = { recording: { ...recording, recordingUrls: ['http://10.0.0.7/1.wav'] } };
    expect(await judge({ ...usual, input }, true)).toBeUndefined();
  });
});

describe('forbidden', () => {
  it.each<[string, object, string]>([
    ['client together with clientPronouns', { client: 'c-1', clientPronouns: 'FeminineHer' }, '/clientPronouns'],
    ['noteTemplateIds together with sessionType', { sessionType: 'Soap' }, '/sessionType'],
    ['recording together with text', { input: { ...usual.input, recording } }, '/input'],
    ['an unknown field', { providerUserId: 'x' }, '/providerUserId'],
    ['an unknown field of the input', { input: { ...usual.input, audio: {} } }, '/input/audio'],
    ['an unknown field of the text', { input: { text: { text: 'x', language: 'en' } } }, '/input/text/language'],
    ['an unknown field of the recording', { input: { recording: { ...recording, s: 1 } } }, '/input/recording/s'],
  ])('%s', async (_name, change, pointer) => {
    expect(await judge({ ...usual, ...change })).toEqual([400, pointer]);
  });

  it.each(['CoupleStandard', 'CoupleSoap', 'CoupleDap'])('%s: Couple sessions are not supported yet', async (type) => {
    expect(await judge({ ...formless, sessionType: type })).toEqual([400, '/sessionType']);
  });
});
