import { validationPipe } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import {
  NoteTemplatesRequest,
  readSpeakers,
  type Speaker,
  UPDATE_EXAMPLES,
  UpdateSessionRequest,
  updateRequest,
} from './update-session.dto.js';

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const USER = '6F1C2A34-5B6D-4E7F-8A9B-0C1D2E3F4A5B';

const validate = (body: unknown): Promise<UpdateSessionRequest> =>
  validationPipe().transform(body, { type: 'body', metatype: UpdateSessionRequest });

/** Stands for the platform user of a person of the EHR. */
const userOf = (speaker: Speaker) => (typeof speaker === 'string' ? speaker : `${speaker.kind} ${speaker.externalId}`);

/** The body sent, or status and pointer of the problem. */
async function judge(body: unknown, kind?: 'recording' | 'text'): Promise<unknown> {
  try {
    const dto = await validate(body);
    const users = readSpeakers(dto.speakerMapping).map(([label, speaker]) => [label, userOf(speaker)] as const);
    return updateRequest(dto, Object.fromEntries(users), kind);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return [problem.status, problem.more.pointer];
  }
}

describe('an update sends', () => {
  it.each<[string, object, 'recording' | 'text']>([
    ['note templates, for a text', { noteTemplateIds: [TEMPLATE] }, 'text'],
    ['note templates, for a recording', { noteTemplateIds: [TEMPLATE] }, 'recording'],
    ['a plan, for a text', { externalTreatmentPlan: 'A plan.' }, 'text'],
    ['a plan, for a recording', { externalTreatmentPlan: 'A plan.' }, 'recording'],
    ['a plan of 100,000 characters', { externalTreatmentPlan: '😀'.repeat(100_000) }, 'text'],
    ['a speaker mapping, for a recording', { speakerMapping: { A: USER, AB: USER } }, 'recording'],
    ['an input text, for a text', { input: { text: 'New notes.' } }, 'text'],
  ])('%s', async (_name, body, kind) => {
    expect(await judge(body, kind)).toEqual(body);
  });

  it('all given fields if the kind of input is unknown', async () => {
    const body = { speakerMapping: { A: USER }, input: { text: 'New notes.' } };
    expect(await judge(body)).toEqual(body);
  });

  it.each<[string, object]>([
    ['omitted', {}],
    ['null', { noteTemplateIds: null, speakerMapping: null, input: null }],
    ['blank', { noteTemplateIds: [], speakerMapping: {}, input: { text: ' \n' } }],
    ['blank text in place of other fields', { noteTemplateIds: '', speakerMapping: '\n', input: ' ' }],
    ['an input whose text is null', { input: { text: null } }],
  ])('no omitted, null or blank field: %s', async (_name, rest) => {
    expect(await judge({ externalTreatmentPlan: 'A plan.', ...rest }, 'text')).toEqual({
      externalTreatmentPlan: 'A plan.',
    });
  });
});

it.each(Object.entries(UPDATE_EXAMPLES))('accepts the OpenAPI example for a %s', async (kind, { value }) => {
  const { speakerMapping: given, ...rest } = value;
  const { speakerMapping: sent, ...others } = (await judge(value, kind as 'recording' | 'text')) as typeof value;
  expect([others, Object.keys(sent ?? {})]).toEqual([rest, Object.keys(given ?? {})]);
});

describe('a speaker mapping', () => {
  it('names speakers by UUIDs of the platform and by ids of the EHR', async () => {
    const { speakerMapping } = await validate({
      speakerMapping: { A: { provider: 'P-1' }, B: { client: 'C-1' }, C: USER, D: { client: 'constructor' } },
    });
    expect(readSpeakers(speakerMapping)).toEqual([
      ['A', { kind: 'provider', externalId: 'P-1' }],
      ['B', { kind: 'client', externalId: 'C-1' }],
      ['C', USER],
      ['D', { kind: 'client', externalId: 'constructor' }],
    ]);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a number', 7],
    ['a text that is not a UUID', 'ada'],
    ['an empty object', {}],
    ['a list', [USER]],
    ['two people', { provider: 'P-1', client: 'C-1' }],
    ['an unknown kind', { person: 'P-1' }],
    ['a kind with the name of a prototype member', JSON.parse('{"constructor": "P-1"}')],
    ['a blank id', { provider: '' }],
    ['an id with a space at its end', { client: 'C-1 ' }],
    ['an id that is not a string', { client: 7 }],
  ])('rejects %s as a speaker', async (_name, speaker) => {
    expect(await judge({ speakerMapping: { B: USER, A: speaker } })).toEqual([400, '/speakerMapping/A']);
  });

  const withLabel = (label: string) => ({ speakerMapping: JSON.parse(`{"A": "${USER}", "${label}": "${USER}"}`) });

  it.each(['toString', 'hasOwnProperty', 'a', 'É', ' A'])('rejects the label %s', async (label) => {
    expect(await judge(withLabel(label))).toEqual([400, '/speakerMapping']);
  });

  // Nest strips these names from every body.
  it.each(['constructor', '__proto__', 'prototype'])('never sends the label %s', async (label) => {
    expect(await judge(withLabel(label))).toEqual({ speakerMapping: { A: USER } });
  });
});

describe('rejects an update without content', () => {
  it.each<[string, object]>([
    ['no field', {}],
    ['only null', { noteTemplateIds: null, externalTreatmentPlan: null, speakerMapping: null, input: null }],
    [
      'only blank fields',
      { noteTemplateIds: [], externalTreatmentPlan: '\t', speakerMapping: {}, input: { text: '' } },
    ],
  ])('%s', async (_name, body) => {
    expect(await judge(body)).toEqual([400, '']);
  });
});

describe('rejects', () => {
  it.each<[string, object, string]>([
    ['noteTemplateIds that are not a list', { noteTemplateIds: TEMPLATE }, '/noteTemplateIds'],
    ['a template id that is not a UUID', { noteTemplateIds: [TEMPLATE, 'soap'] }, '/noteTemplateIds'],
    ['a blank template id', { noteTemplateIds: [''] }, '/noteTemplateIds'],
    ['a template id that is not a string', { noteTemplateIds: [7] }, '/noteTemplateIds'],
    ['a plan that is not a string', { externalTreatmentPlan: ['A plan.'] }, '/externalTreatmentPlan'],
    ['a plan that is too long', { externalTreatmentPlan: 'x'.repeat(100_001) }, '/externalTreatmentPlan'],
    ['a speakerMapping that is a string', { speakerMapping: 'A' }, '/speakerMapping'],
    ['a speakerMapping that is a list', { speakerMapping: [USER] }, '/speakerMapping'],
    ['a label that does not consist of letters', { speakerMapping: { 'Speaker 1': USER } }, '/speakerMapping'],
    ['an input that is a string', { input: 'New notes.' }, '/input'],
    ['an input without text', { input: {} }, '/input/text'],
    ['an input.text that is not a string', { input: { text: 7 } }, '/input/text'],
    ['input.text in the form of a create', { input: { text: { text: 'New notes.' } } }, '/input/text'],
    ['an unknown field', { date: '2026-01-31' }, '/date'],
    ['an unknown field of the input', { input: { text: 'x', recording: {} } }, '/input/recording'],
  ])('%s', async (_name, body, pointer) => {
    expect(await judge(body)).toEqual([400, pointer]);
  });

  it('a speaker mapping for a text (the spec’s table as corrected)', async () => {
    expect(await judge({ speakerMapping: { A: USER } }, 'text')).toEqual([400, '/speakerMapping']);
  });

  it('an input text for a recording (the spec’s table as corrected)', async () => {
    expect(await judge({ input: { text: 'x' } }, 'recording')).toEqual([400, '/input']);
  });
});

describe('the deprecated update of note templates', () => {
  const validated = (body: unknown) =>
    validationPipe().transform(body, { type: 'body', metatype: NoteTemplatesRequest }) as Promise<NoteTemplatesRequest>;

  it('accepts UUIDs', async () => {
    expect((await validated({ noteTemplateIds: [TEMPLATE, USER] })).noteTemplateIds).toEqual([TEMPLATE, USER]);
  });

  it.each([[{}], [{ noteTemplateIds: null }], [{ noteTemplateIds: [] }], [{ noteTemplateIds: ['soap'] }]])(
    'rejects %j',
    async (body) => {
      await expect(validated(body)).rejects.toMatchObject({ status: 400, more: { pointer: '/noteTemplateIds' } });
    },
  );
});
