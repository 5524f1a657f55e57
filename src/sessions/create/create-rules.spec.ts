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

/** Status and pointer of the problem that rejects a body; undefined if it is valid. */
async function judge(body: unknown, privateHostsAllowed = false): Promise<[number, string | undefined] | undefined> {
  try {
    const dto = await validationPipe().transform(body, { type: 'body', metatype: CreateSessionRequest });
    const fault = createFault(dto, { privateHostsAllowed });
    if (!fault) return undefined;
    throw fault;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return [problem.status, problem.more.pointer];
  }
}

const { noteTemplateIds: _, ...withoutForm } = usual;
const { provider: __, ...withoutProvider } = usual;
const { input: ___, ...withoutInput } = usual;

describe('accepts', () => {
  it.each<[string, object]>([
    ['form B, from a text', usual],
    ['form B, several templates', { ...usual, noteTemplateIds: ['t-1', 't-2'] }],
    ['form A, by session type', { ...withoutForm, sessionType: 'Soap' }],
    ['from a recording', { ...usual, input: { recording } }],
    ['with a client', { ...usual, client: 'c-1' }],
    ['with pronouns and no client', { ...usual, clientPronouns: 'NeutralThem' }],
    ['with a date in Universal Time', { ...usual, date: '2026-01-31T08:00:00Z' }],
    ['with a date in another zone', { ...usual, date: '2026-01-31T08:00:00.123+01:00' }],
    ['with an appointment', { ...usual, partnerAppointmentId: 'visit 17/2026' }],
    ['with a plan of 100,000 characters', { ...usual, externalTreatmentPlan: 'x'.repeat(100_000) }],
    ['with a plan of 100,000 characters of two code units', { ...usual, externalTreatmentPlan: '😀'.repeat(100_000) }],
    [
      'with null in every optional field',
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

it.each(Object.entries(CREATE_EXAMPLES))('accepts the OpenAPI example: %s', async (_name, { value }) => {
  expect(await judge(value)).toBeUndefined();
});

describe('accepts each value of the spec', () => {
  const supported = SESSION_TYPES.filter((type) => !type.startsWith('Couple'));

  it.each(supported)('sessionType %s', async (sessionType) => {
    expect(await judge({ ...withoutForm, sessionType })).toBeUndefined();
  });

  it.each(CLIENT_PRONOUNS)('clientPronouns %s', async (clientPronouns) => {
    expect(await judge({ ...usual, clientPronouns })).toBeUndefined();
  });

  it.each(RECORDING_CONTENTS)('recordingContent %s', async (recordingContent) => {
    expect(await judge({ ...usual, input: { recording: { ...recording, recordingContent } } })).toBeUndefined();
  });
});

describe('rejects the absence of', () => {
  it.each<[string, unknown, string]>([
    ['provider', withoutProvider, '/provider'],
    ['both noteTemplateIds and sessionType', withoutForm, '/noteTemplateIds'],
    ['input', withoutInput, '/input'],
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

describe('rejects the type of', () => {
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
    ['input.text', { input: { text: 'What was said.' } }, '/input/text'],
    ['input.text.text', { input: { text: { text: 1 } } }, '/input/text/text'],
    ['date', { date: 1_767_225_600_000 }, '/date'],
    ['partnerAppointmentId', { partnerAppointmentId: 17 }, '/partnerAppointmentId'],
    ['externalTreatmentPlan', { externalTreatmentPlan: { goals: [] } }, '/externalTreatmentPlan'],
  ])('%s', async (_name, change, pointer) => {
    expect(await judge({ ...usual, ...change })).toEqual([400, pointer]);
  });
});

describe('rejects', () => {
  it.each<[string, object, string]>([
    ['a blank provider', { provider: '' }, '/provider'],
    ['unknown clientPronouns', { clientPronouns: 'Other' }, '/clientPronouns'],
    ['empty noteTemplateIds', { noteTemplateIds: [] }, '/noteTemplateIds'],
    ['a blank template id', { noteTemplateIds: [' '] }, '/noteTemplateIds'],
    ['an unknown sessionType', { noteTemplateIds: null, sessionType: 'soap' }, '/sessionType'],
    [
      'empty recordingUrls',
      { input: { recording: { ...recording, recordingUrls: [] } } },
      '/input/recording/recordingUrls',
    ],
    [
      'an unknown recordingContent',
      { input: { recording: { ...recording, recordingContent: 'Audio' } } },
      '/input/recording/recordingContent',
    ],
    ['a blank text', { input: { text: { text: ' \n' } } }, '/input/text/text'],
    ['a date that is not a date', { date: 'yesterday' }, '/date'],
    ['a date that does not exist', { date: '2026-02-30T08:00:00Z' }, '/date'],
    ['a blank partnerAppointmentId', { partnerAppointmentId: ' ' }, '/partnerAppointmentId'],
    ['a NUL in partnerAppointmentId', { partnerAppointmentId: 'visit\0' }, '/partnerAppointmentId'],
    ['a reserved partnerAppointmentId', { partnerAppointmentId: 'notebridge:1' }, '/partnerAppointmentId'],
    [
      'a plan of more than 100,000 characters',
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
  ])('a recording at %s', async (url) => {
    const input = { recording: { ...recording, recordingUrls: [...urls, url] } };
    expect(await judge({ ...usual, input })).toEqual([422, '/input/recording/recordingUrls/2']);
  });

  it('a recording in a private network, unless the settings allow it', async () => {
    const input = { recording: { ...recording, recordingUrls: ['http://10.0.0.7/1.wav'] } };
    expect(await judge({ ...usual, input }, true)).toBeUndefined();
  });
});

describe('does not allow', () => {
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

  it.each(['CoupleStandard', 'CoupleSoap', 'CoupleDap'])(
    '%s, because Couple sessions are not supported yet',
    async (type) => {
      expect(await judge({ ...withoutForm, sessionType: type })).toEqual([400, '/sessionType']);
    },
  );
});
