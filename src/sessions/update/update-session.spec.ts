import { validationPipe } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import { NoteTemplatesRequest, UPDATE_EXAMPLES, UpdateSessionRequest, updateRequest } from './update-session.dto.js';

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const USER = '6F1C2A34-5B6D-4E7F-8A9B-0C1D2E3F4A5B';

/** What is sent, or status and pointer of the refusal. */
async function judge(body: unknown, kind?: 'recording' | 'text'): Promise<unknown> {
  try {
    return updateRequest(
      await validationPipe().transform(body, { type: 'body', metatype: UpdateSessionRequest }),
      kind,
    );
  } catch (refusal) {
    if (!(refusal instanceof Problem)) throw refusal;
    return [refusal.status, refusal.more.pointer];
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

  it('whatever it is given where the kind of input is not known: the platform judges', async () => {
    const body = { speakerMapping: { A: USER }, input: { text: 'New notes.' } };
    expect(await judge(body)).toEqual(body);
  });

  it.each<[string, object]>([
    ['omitted', {}],
    ['null', { noteTemplateIds: null, speakerMapping: null, input: null }],
    ['blank', { noteTemplateIds: [], speakerMapping: {}, input: { text: ' \n' } }],
    ['blank text in place of other fields', { noteTemplateIds: '', speakerMapping: '\n', input: ' ' }],
    ['an input whose text is null', { input: { text: null } }],
  ])('nothing of what is left out: %s', async (_name, rest) => {
    expect(await judge({ externalTreatmentPlan: 'A plan.', ...rest }, 'text')).toEqual({
      externalTreatmentPlan: 'A plan.',
    });
  });
});

it.each(Object.entries(UPDATE_EXAMPLES))('the example of OpenAPI may be sent: for a %s', async (kind, { value }) => {
  expect(await judge(value, kind as 'recording' | 'text')).toEqual(value);
});

describe('at least one field must hold something', () => {
  it.each<[string, object]>([
    ['none is there', {}],
    ['all are null', { noteTemplateIds: null, externalTreatmentPlan: null, speakerMapping: null, input: null }],
    ['all are blank', { noteTemplateIds: [], externalTreatmentPlan: '\t', speakerMapping: {}, input: { text: '' } }],
  ])('%s', async (_name, body) => {
    expect(await judge(body)).toEqual([400, '']);
  });
});

describe('refused', () => {
  it.each<[string, object, string]>([
    ['noteTemplateIds is no list', { noteTemplateIds: TEMPLATE }, '/noteTemplateIds'],
    ['a template id is no UUID', { noteTemplateIds: [TEMPLATE, 'soap'] }, '/noteTemplateIds'],
    ['a template id is blank', { noteTemplateIds: [''] }, '/noteTemplateIds'],
    ['a template id is no text', { noteTemplateIds: [7] }, '/noteTemplateIds'],
    ['the plan is no text', { externalTreatmentPlan: ['A plan.'] }, '/externalTreatmentPlan'],
    ['the plan is too long', { externalTreatmentPlan: 'x'.repeat(100_001) }, '/externalTreatmentPlan'],
    ['speakerMapping is a text', { speakerMapping: 'A' }, '/speakerMapping'],
    ['speakerMapping is a list', { speakerMapping: [USER] }, '/speakerMapping'],
    ['a label is not made of letters', { speakerMapping: { 'Speaker 1': USER } }, '/speakerMapping'],
    ['a user is no UUID', { speakerMapping: { A: USER, B: 'ada' } }, '/speakerMapping/B'],
    ['a user is null', { speakerMapping: { A: null } }, '/speakerMapping/A'],
    ['input is a text', { input: 'New notes.' }, '/input'],
    ['input has no text', { input: {} }, '/input/text'],
    ['input.text is no text', { input: { text: 7 } }, '/input/text'],
    ['input.text is where a create has it', { input: { text: { text: 'New notes.' } } }, '/input/text'],
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
  const validate = (body: unknown) =>
    validationPipe().transform(body, { type: 'body', metatype: NoteTemplatesRequest }) as Promise<NoteTemplatesRequest>;

  it('takes UUIDs', async () => {
    expect((await validate({ noteTemplateIds: [TEMPLATE, USER] })).noteTemplateIds).toEqual([TEMPLATE, USER]);
  });

  it.each([[{}], [{ noteTemplateIds: null }], [{ noteTemplateIds: [] }], [{ noteTemplateIds: ['soap'] }]])(
    'refuses %j',
    async (body) => {
      await expect(validate(body)).rejects.toMatchObject({ status: 400, more: { pointer: '/noteTemplateIds' } });
    },
  );
});
