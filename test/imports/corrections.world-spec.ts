import type { CorrectedRow } from '../../src/imports/api/imports.dto.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { type ImportBody, importsIn } from './imports.js';

const world = useWorld();
const { uploadFiles, imported, planned, ended, settled, show, rows, outcomes, rejected, transition } = importsIn(world);

const correct = (id: string, corrections: Partial<CorrectedRow>[]) =>
  world.call<ImportBody>('PATCH', `/v1/imports/${id}/rows`, { body: { rows: corrections } });
const person = (kind: string, id: string) => world.call('GET', `/v1/${kind}/${id}`);

/** Corrects rows, and makes the plan again. */
async function replanned(id: string, corrections: Partial<CorrectedRow>[]) {
  const { status, body } = await correct(id, corrections);
  expect([status, body.state]).toEqual([202, 'staging']);
  await world.work.imports();
  return show(id);
}

/** A plan with one accepted and one rejected row of each kind. */
const plan = () =>
  planned('dryRun=true', [
    providersCsv([providerLine('p-1'), 'p-2,no mail,Pia,Two']),
    clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-x'])]),
  ]);

describe('a correction of a planned row', () => {
  test('may name providers that are only planned', async () => {
    const { id } = await plan();
    const view = await replanned(id, [{ file: 'clients.csv', line: 3, providers: ['p-1'] }]);
    expect(view).toMatchObject({ state: 'planned', corrected: 1, planned: { 'create-or-link': 3, rejected: 1 } });
    expect((await rows(id)).map(({ externalId, planned: to, corrected }) => [externalId, to, corrected])).toEqual([
      ['p-1', 'create-or-link', false],
      ['p-2', 'rejected', false],
      ['c-1', 'create-or-link', false],
      ['c-2', 'create-or-link', true],
    ]);
  });

  test('may name a provider whose row the same request corrects', async () => {
    const { id } = await plan();
    const view = await replanned(id, [
      { file: 'providers.csv', line: 3, email: 'p-2@example.org' },
      { file: 'clients.csv', line: 3, providers: ['p-2', 'p-1'] },
    ]);
    expect(view).toMatchObject({ corrected: 2, planned: { 'create-or-link': 4 }, reasons: [] });
    expect((await ended(id, 'apply')).counts).toMatchObject({ created: 4 });
    expect((await person('clients', 'c-2')).body).toMatchObject({ providers: ['p-2', 'p-1'] });
  });

  test('sends nothing until the plan is applied', async () => {
    const { id } = await plan();
    await replanned(id, [{ file: 'clients.csv', line: 3, providers: ['p-1'] }]);
    await world.settle();
    expect([(await show(id)).state, world.platform.arrivals()]).toEqual(['planned', 0]);
    expect((await person('clients', 'c-2')).status).toBe(404);
  });

  test('stays rejected with the new reason if it is wrong', async () => {
    const { id } = await plan();
    await replanned(id, [{ file: 'clients.csv', line: 3, providers: ['p-1'], email: 'no mail' }]);
    const [row] = await rows(id, 'outcome=rejected&code=bad-email&cells=true').then((all) => all.slice(-1));
    expect(row).toMatchObject({ externalId: 'c-2', corrected: true, cells: { email: 'no mail', providers: 'p-1' } });
    await replanned(id, [{ row: row?.row as number, email: '' }]);
    expect((await show(id)).planned).toEqual({ 'create-or-link': 3, rejected: 1 });
  });

  test('may give a row another id', async () => {
    const { id } = await planned('dryRun=true', [
      providersCsv([providerLine('p-1')]),
      clientsCsv([clientLine('c-1', ['p-1']), 'c-1,,Other,Person,p-1', ',,Ann,Ash,p-1']),
    ]);
    const view = await replanned(id, [
      { file: 'clients.csv', line: 3, externalId: 'c-2' },
      { file: 'clients.csv', line: 4, externalId: 'c-3' },
    ]);
    expect(view).toMatchObject({ corrected: 2, repeatedIds: 0, planned: { 'create-or-link': 4 } });
  });

  test('is compared with all other rows again', async () => {
    const { id } = await plan();
    await replanned(id, [{ file: 'clients.csv', line: 3, externalId: 'c-1', providers: ['p-1'] }]);
    const [row] = await rows(id, 'code=duplicate-id');
    expect(row).toMatchObject({ line: 3, hint: expect.stringContaining('line 2') });
  });

  test('changes the guards', async () => {
    await imported('', [providersCsv([providerLine('p-1')])]);
    const file = (prefix: string) => clientsCsv(many(3, 'c').map((one) => `${prefix}${one},,Cleo,${one},p-1`));
    await imported('', [file('')]);
    const { id, guards } = await planned('dryRun=true', [
      clientsCsv(['x-c-1,,Cleo,c-1,p-1', 'x-c-2,,Cleo,c-2,p-1', 'x-c-3,,Cleo,c-3,p-x']),
    ]);
    expect(guards.filter(({ exceeded }) => exceeded)).toEqual([]);
    const view = await replanned(id, [{ file: 'clients.csv', line: 4, providers: ['p-1'] }]);
    expect(view.guards.filter(({ exceeded }) => exceeded).map(({ name }) => name)).toEqual(['looksDoubled']);
    expect((await transition(id, 'apply')).status).toBe(409);
  });

  test('lets a snapshot delete the people that it does not name, once every row names someone', async () => {
    await imported('', [
      providersCsv([providerLine('p-1')]),
      clientsCsv(many(3, 'c').map((one) => clientLine(one, ['p-1']))),
    ]);
    const { id, ...before } = await planned('mode=snapshot', [
      clientsCsv([clientLine('c-1', ['p-1']), ',,Cleo,c-2,p-1']),
    ]);
    expect(before).toMatchObject({ unclearRows: 1, planned: { unchanged: 1, rejected: 1 } });
    const view = await replanned(id, [{ file: 'clients.csv', line: 3, externalId: 'c-2' }]);
    expect(view).toMatchObject({ unclearRows: 0, planned: { unchanged: 2, delete: 1 } });
    expect((await rows(id, 'planned=delete')).map(({ externalId }) => externalId)).toEqual(['c-3']);
  });

  test('keeps names and email of a known person if the row only links it', async () => {
    await imported('', [providersCsv([providerLine('p-1')]), clientsCsv([clientLine('c-1', ['p-1'])])]);
    const links = { name: 'links.csv', type: 'text/csv', content: 'kind,externalId,platformUserId\nclient,c-1,7' };
    const { id } = await planned('dryRun=true', [links]);
    const { platformUserId } = (await person('clients', 'c-1')).body;
    const view = await replanned(id, [{ line: 2, platformUserId: platformUserId as string }]);
    expect(view.planned).toEqual({ unchanged: 1 });
  });

  test('keeps the reasons of other rows from FHIR', async () => {
    const patient = (id: string) => ({
      ...{ resourceType: 'Patient', id, name: [{ family: 'Ash', given: ['Ann'] }] },
      generalPractitioner: [{ display: 'Ada Osei' }],
    });
    const ada = { resourceType: 'Practitioner', id: 'p-1', name: [{ family: 'Osei', given: ['Ada'] }] };
    const practitioner = { ...ada, telecom: [{ system: 'email', value: 'ada@example.org' }] };
    const content = [practitioner, patient('c-1'), patient('c-2')].map((one) => JSON.stringify(one)).join('\n');
    const { id } = await planned('dryRun=true', [{ name: 'all.ndjson', type: 'application/fhir+ndjson', content }]);
    const hints = async () => (await rows(id, 'code=unresolved-provider')).map(({ hint }) => hint);
    const [first] = await hints();
    const view = await replanned(id, [{ line: 2, providers: ['p-1'] }]);
    expect(view.planned).toEqual({ 'create-or-link': 2, rejected: 1 });
    expect([first, await hints()]).toEqual([expect.stringContaining('display'), [first]]);
  });
});

describe('a correction is refused', () => {
  test('if several rows are meant, until one is named by its number', async () => {
    const { id } = await plan();
    const { status, body } = await correct(id, [{ line: 3, providers: ['p-1'] }]);
    expect([status, body]).toMatchObject([422, { type: expect.stringContaining('ambiguous-row'), pointer: '/rows/0' }]);
    expect((await replanned(id, [{ row: 4, providers: ['p-1'] }])).corrected).toBe(1);
  });

  test.each<[string, Partial<CorrectedRow>]>([
    ['row that was accepted', { file: 'clients.csv', line: 2 }],
    ['file', { file: 'others.csv', line: 3 }],
    ['line', { line: 99 }],
  ])('if it names a %s without rejected rows', async (_, row) => {
    const { id } = await plan();
    const { status, body } = await correct(id, [{ file: 'clients.csv', line: 3, providers: ['p-1'] }, row]);
    expect([status, body]).toMatchObject([422, { type: expect.stringContaining('unknown-row'), pointer: '/rows/1' }]);
    expect(await show(id)).toMatchObject({ state: 'planned', corrected: 0 });
  });

  test('once the plan was applied', async () => {
    const { id } = await plan();
    await ended(id, 'apply');
    const { status, body } = await correct(id, [{ file: 'clients.csv', line: 3, providers: ['p-1'] }]);
    expect([status, body]).toMatchObject([409, { type: expect.stringContaining('wrong-state'), state: 'completed' }]);
  });

  test('once the plan was cancelled', async () => {
    const { id } = await plan();
    await transition(id, 'cancel');
    expect((await correct(id, [{ row: 4, providers: ['p-1'] }])).status).toBe(409);
  });
});

describe('a correction of an applied import', () => {
  test('is a new import that names it', async () => {
    const { id } = await plan();
    await ended(id, 'apply');
    const lines = (await rejected(id)).map((line) => line.replace(/p-x(.*),unknown-provider,.*$/, 'p-1$1,,'));
    const content = lines.filter((line) => !line.includes('bad-email')).join('\n');
    const { body } = await uploadFiles(`correctionOf=${id}`, [{ name: 'rejected.csv', type: 'text/csv', content }]);
    await settled(body.id);
    expect(await show(body.id)).toMatchObject({ correctionOf: id, counts: { total: 1, created: 1 } });
    expect(await outcomes(id)).toContainEqual(['c-2', 'rejected', 'unknown-provider']);
  });

  test('must name an import that exists', async () => {
    const content = 'externalId,email,firstName,lastName\np-1,p-1@example.org,Pia,One';
    const unknown = 'correctionOf=0190c9d2-0000-4000-8000-000000000001&kind=providers';
    expect((await uploadFiles(unknown, [{ name: 'f.csv', type: 'text/csv', content }])).status).toBe(404);
    expect((await uploadFiles('correctionOf=7', [{ name: 'f.csv', type: 'text/csv', content }])).status).toBe(400);
  });
});
