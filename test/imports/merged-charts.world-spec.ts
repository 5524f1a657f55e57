import type { ImportFile } from '../../harness/service.js';
import { peopleOf } from '../people/mirroring.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const world = useWorld();
const { planned, imported, ended, outcomes, rows, show } = importsIn(world);
const { put, get, settled, verdictOf } = peopleOf(world);

const patient = (id: string, more: object = {}) => ({
  resourceType: 'Patient',
  id,
  name: [{ family: 'Sample', given: ['Ann'] }],
  generalPractitioner: [{ reference: 'Practitioner/home' }],
  ...more,
});
const link = (type: string, id: string) => ({ link: [{ type, other: { reference: `Patient/${id}` } }] });
const old = patient('old', link('replaced-by', 'new'));
const survivor = patient('new', link('replaces', 'old'));

const file = (...resources: object[]): ImportFile[] => [
  {
    ...{ name: 'patients.ndjson', type: 'application/fhir+ndjson' },
    content: resources.map((resource) => JSON.stringify(resource)).join('\n'),
  },
];
const merge = (id: string, into: string) => world.call('POST', `/v1/clients/${id}/merge`, { body: { into } });
const importOf = async (...resources: object[]) => outcomes((await imported('', file(...resources))).id);
const hintOf = async (id: string, code: string) => (await rows(id, `code=${code}`))[0]?.hint;

beforeEach(async () => {
  await put('providers/home');
});

describe('a chart that was merged in the EHR', () => {
  test('needs nothing once it is merged or renamed here, or was deleted', async () => {
    for (const id of ['old', 'new', 'renamed', 'gone']) await put(`clients/${id}`);
    const into = link('replaced-by', 'new');
    const charts = [old, patient('renamed', into), patient('gone', into)];
    expect(await importOf(...charts)).toEqual(charts.map(({ id }) => [id, 'rejected', 'merge-needed']));
    expect((await merge('old', 'new')).status).toBe(200);
    await world.call('POST', '/v1/clients/renamed/rename', { body: { externalId: 'other' } });
    await world.call('DELETE', '/v1/clients/gone');
    await world.settle();
    expect(await importOf(...charts)).toEqual(charts.map(({ id }) => [id, 'skipped', 'merged-record']));
  });

  test('is named although only its survivor is in the file, until the two are merged', async () => {
    await put('clients/old');
    const { id } = await imported('', file(survivor, patient('another', link('replaces', 'unknown'))));
    expect(await outcomes(id)).toEqual([
      ['new', 'created', null],
      ['another', 'created', null],
      ['old', 'rejected', 'merge-needed'],
    ]);
    expect(await hintOf(id, 'merge-needed')).toContain('POST /v1/clients/old/merge {"into": "new"}');
    expect((await rows(id, 'code=merge-needed'))[0]).toMatchObject({ file: 'patients.ndjson', line: 1 });
    await merge('old', 'new');
    expect(await importOf(survivor)).toEqual([['new', 'unchanged', null]]);
  });

  test('whose survivor has no usable id is named, with what to look up', async () => {
    await put('clients/old');
    const { id } = await imported(
      '',
      file(patient('old', { link: [{ type: 'replaced-by', other: { display: 'A' } }] })),
    );
    expect(await hintOf(id, 'merge-needed')).toMatch(/Look up that id in the EHR.* POST \/v1\/clients\/old\/merge/);
  });

  test.each([
    ['rejects', [survivor, old]],
    ['leaves out, but its survivor names', [survivor]],
  ])('and that a snapshot %s is not deleted', async (_, resources) => {
    await put('clients/old');
    await put('clients/missing');
    const { id } = await planned('mode=snapshot', file(...resources));
    const deletes = { deletes: { pending: 1 } };
    expect(await show(id)).toMatchObject(deletes);
    await ended(id, 'apply', ['deletes']);
    expect(verdictOf(await get('clients/old'))).toEqual(['synced', null]);
    expect(verdictOf(await settled('clients/missing'))).toEqual(['deleted', null]);
  });

  test('is never created from an older version of it', async () => {
    const version = (versionId: string) => ({ meta: { versionId } });
    expect(await importOf({ ...patient('old'), ...version('1') }, { ...old, ...version('2') })).toEqual([
      ['old', 'skipped', 'older-version'],
      ['old', 'skipped', 'merged-record'],
    ]);
  });

  test('is a client like any other once the EHR has undone the merge', async () => {
    const version = (versionId: string) => ({ meta: { versionId } });
    expect(await importOf({ ...old, ...version('1') }, { ...patient('old'), ...version('2') })).toEqual([
      ['old', 'skipped', 'older-version'],
      ['old', 'created', null],
    ]);
  });

  test('gives its user to a survivor with the same email, which needs a review until then', async () => {
    const telecom = [{ system: 'email', value: 'ann@example.org' }];
    const { platformUserId } = await put('clients/old', { email: 'ann@example.org' });
    expect(await importOf({ ...survivor, telecom }, old)).toEqual([
      ['new', 'needsReview', 'email-taken'],
      ['old', 'rejected', 'merge-needed'],
    ]);
    await merge('old', 'new');
    expect(await settled('clients/new')).toMatchObject({ platformUserId, sync: { state: 'synced' } });
  });
});
