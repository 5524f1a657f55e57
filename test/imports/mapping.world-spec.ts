import { canary, Searcher } from '../../harness/canaries.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const world = useWorld();
const {
  upload,
  uploadFiles,
  start,
  imported,
  planned,
  map,
  ended,
  settled,
  show,
  rows,
  outcomes,
  rejected,
  transition,
} = importsIn(world);

const csv = (name: string, ...lines: string[]) => ({ name, type: 'text/csv', content: lines.join('\n') });
const person = (kind: string, id: string) => world.call('GET', `/v1/${kind}/${id}`);
const records = () => world.sql<{ sealed: Buffer }>('SELECT sealed FROM import_records');
const knowProvider = () => imported('', [providersCsv([providerLine('p-1')])]);

/** Clients whose id could be in two columns. */
const ambiguous = (...lines: string[]) => csv('clients.csv', 'ID,MRN,First Name,Last Name,Provider', ...lines);

/** Sends such clients. @returns the id of the import, which waits for its mapping */
async function waiting(...lines: string[]): Promise<string> {
  const id = await start('', [ambiguous(...lines)]);
  expect((await show(id)).state).toBe('needs-mapping');
  return id;
}

describe('a mapping with the upload', () => {
  test('names columns by field', async () => {
    await knowProvider();
    const german = csv('clients.csv', 'Nr,Vorname,Nachname,Behandler', '1,Änne,Öztürk,p-1');
    const columns = 'columns=externalId:Nr,firstName:Vorname,lastName:Nachname,providers:Behandler';
    const view = await imported(columns, [german]);
    expect(view.files[0]?.mapping).toMatchObject({ idReason: 'You chose "Nr".', question: null });
    expect((await person('clients', '1')).body).toMatchObject({ firstName: 'Änne', providers: ['p-1'] });
  });

  test('may be for the files of one kind only', async () => {
    const files = [
      csv('providers.csv', 'ID,NPI,Code,First Name,Last Name,Email', '7,99,T1,Ada,Osei,ada@example.org'),
      csv('clients.csv', 'ID,First Name,Last Name,Provider', '7,Ann,Ash,T1'),
    ];
    await imported('columns=providers.externalId:Code', files);
    expect((await person('clients', '7')).body).toMatchObject({ firstName: 'Ann', providers: ['T1'] });
  });

  test('may leave a field without a column', async () => {
    await knowProvider();
    const file = csv('clients.csv', 'ID,First Name,Last Name,Email,Provider', '1,Ann,Ash,front-desk@example.org,p-1');
    await imported('columns=email:', [file]);
    expect((await person('clients', '1')).body).toMatchObject({ email: null });
  });

  test('is refused if it names an unknown column', async () => {
    const { status, body } = await uploadFiles('columns=externalId:PAT_ID', [ambiguous('1,M-1,Ann,Ash,p-1')]);
    expect([status, body]).toMatchObject([422, { type: expect.stringContaining('unknown-column'), line: 1 }]);
    expect(body.detail).toContain('The file has the columns ID, MRN, First Name, Last Name, Provider.');
  });

  test('is refused if it names an unknown field', async () => {
    expect((await uploadFiles('columns=name:ID', [ambiguous('1,M-1,Ann,Ash,p-1')])).status).toBe(400);
  });
});

describe('an import that needs a mapping', () => {
  test('keeps its question until a valid mapping comes', async () => {
    await knowProvider();
    const id = await waiting('1,M-1,Ann,Ash,p-1');
    const wrong = await map(id, { externalId: 'PAT_ID' });
    expect([wrong.status, (await show(id)).state]).toEqual([422, 'needs-mapping']);
    expect((await map(id, { email: '' })).body.state).toBe('needs-mapping');
    expect((await transition(id, 'apply')).status).toBe(409);
    expect((await map(id, { externalId: 'MRN' })).status).toBe(202);
    await settled(id);
    expect(await outcomes(id)).toEqual([['M-1', 'created', null]]);
    expect(await records()).toEqual([]);
    expect((await map(id, { externalId: 'ID' })).status).toBe(409);
  });

  test('offers the columns of the last import of its kind', async () => {
    await knowProvider();
    const first = await waiting('1,M-1,Ann,Ash,p-1');
    expect((await show(first)).offeredColumns).toBeNull();
    await map(first, { externalId: 'MRN', email: '' });
    await settled(first);
    expect((await show(await waiting('2,M-2,Ben,Bay,p-1'))).offeredColumns).toEqual({
      ...{ externalId: 'MRN', firstName: 'First Name', lastName: 'Last Name', providers: 'Provider', email: '' },
    });
  });

  test('waits with all its files, and maps each kind by its own columns', async () => {
    const providers = csv('providers.csv', 'id,uuid,fname,lname,email', '5,u-5,Jane,Smith,jane@example.org');
    const id = await start('', [providers, ambiguous('1,M-1,Ann,Ash,5')]);
    expect((await map(id, { 'providers.externalId': 'id' })).body.state).toBe('needs-mapping');
    await map(id, { 'clients.externalId': 'ID' });
    await settled(id);
    expect((await person('clients', '1')).body).toMatchObject({ providers: ['5'] });
  });

  test('reads fields without a column as empty', async () => {
    await knowProvider();
    const file = csv('clients.csv', 'ID,MRN,First Name,Last Name,Email,Provider', '1,M-1,Ann,Ash,desk@example.org,p-1');
    const id = await start('', [file]);
    await map(id, { externalId: 'ID', 'clients.email': '' });
    await settled(id);
    expect((await person('clients', '1')).body).toMatchObject({ email: null });
  });

  test('stores its records encrypted', async () => {
    await waiting(`1,${canary('mrn')},${canary('first')},Ash,p-1`);
    const stored = await records();
    expect(stored).toHaveLength(1);
    const searcher = new Searcher();
    for (const { sealed } of stored) expect(searcher.finds(sealed)).toEqual([]);
  });

  test('is cancelled after 24 hours, without its records', async () => {
    const id = await waiting('1,M-1,Ann,Ash,p-1');
    await world.advance('23 h');
    await world.settle();
    expect((await show(id)).state).toBe('needs-mapping');
    await world.advance('61 min');
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'cancelled', error: { code: 'mapping-expired' } });
    expect(await records()).toEqual([]);
  });

  test('can be cancelled, without its records', async () => {
    const id = await waiting('1,M-1,Ann,Ash,p-1');
    expect((await transition(id, 'cancel')).status).toBe(200);
    await world.settle();
    expect([(await show(id)).state, await records()]).toEqual(['cancelled', []]);
  });
});

describe('a client deleted while an import waits for its mapping', () => {
  test('is skipped if it was unknown', async () => {
    await knowProvider();
    const id = await waiting('1,M-1,Ann,Ash,p-1', '2,M-2,Ben,Bay,p-1');
    expect((await world.call('DELETE', '/v1/clients/1')).status).toBe(404);
    await map(id, { externalId: 'ID' });
    await settled(id);
    expect(await outcomes(id)).toEqual([
      ['1', 'skipped', 'changed-since-read'],
      ['2', 'created', null],
    ]);
    expect((await person('clients', '1')).status).toBe(404);
  });

  test('stays deleted if it was known, and a snapshot still counts it as named', async () => {
    await knowProvider();
    await imported('columns=externalId:ID', [ambiguous('1,M-1,Ann,Ash,p-1', '2,M-2,Ben,Bay,p-1')]);
    const id = await start('mode=snapshot', [ambiguous('1,M-1,Ann,New,p-1', '2,M-2,Ben,Bay,p-1')]);
    expect((await world.call('DELETE', '/v1/clients/1')).status).toBe(202);
    await world.settle();
    await map(id, { externalId: 'ID' });
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'planned', planned: { unchanged: 1 }, unclearRows: 0 });
    expect(await outcomes(id)).toEqual([
      ['1', 'skipped', 'changed-since-read'],
      ['2', 'unchanged', null],
    ]);
  });

  test('is erased from a file whose cells are guarded against spreadsheets', async () => {
    await knowProvider();
    const columns = 'kind,externalId,email,firstName,lastName,providers,platformUserId,file,line,code,hint';
    const guarded = csv('rejected.csv', columns, "client,'=1,,Ann,Ash,p-1,,,,,");
    const id = await start('', [ambiguous('2,M-2,Ben,Bay,p-1'), guarded]);
    const before = await records();
    expect((await world.call('DELETE', '/v1/clients/%3D1')).status).toBe(404);
    expect(await records()).not.toEqual(before);
    await map(id, { 'clients.externalId': 'ID' });
    await settled(id);
    expect(await outcomes(id)).toEqual([
      ['2', 'created', null],
      ['=1', 'rejected', 'erased'],
    ]);
  });

  test('takes no one with it from a snapshot whose row contains its id elsewhere', async () => {
    await imported('', [providersCsv([providerLine('1')])]);
    await imported('columns=externalId:ID', [ambiguous('1,M-1,Ann,Ash,1', '2,M-2,Ben,Bay,1')]);
    const id = await start('mode=snapshot', [ambiguous('2,M-2,Ben,Bay,1')]);
    await world.call('DELETE', '/v1/clients/1');
    await world.settle();
    await map(id, { externalId: 'ID' });
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'planned', planned: { rejected: 1 }, unclearRows: 1 });
    expect((await rows(id)).map(({ code, hint }) => [code, hint])).toEqual([
      ['erased', expect.stringContaining('import it again')],
    ]);
  });

  test('returns with an import that was uploaded after the deletion', async () => {
    await knowProvider();
    await imported('columns=externalId:ID', [ambiguous('1,M-1,Ann,Ash,p-1')]);
    await world.call('DELETE', '/v1/clients/1');
    const id = await waiting('1,M-1,Ann,Ash,p-1');
    await world.settle();
    await map(id, { externalId: 'ID' });
    await settled(id);
    expect(await outcomes(id)).toEqual([['1', 'created', null]]);
  });
});

describe('guards of a mapping', () => {
  const three = ['1,M-1,Ann,Ash,p-1', '2,M-2,Ben,Bay,p-1', '3,M-3,Cy,Cole,p-1'];

  test('idColumn and looksDoubled stop ids of another column until they are confirmed', async () => {
    await knowProvider();
    await imported('columns=externalId:ID', [ambiguous(...three)]);
    const id = await start('columns=externalId:MRN', [ambiguous(...three)]);
    await world.settle();
    const { state, guards } = await show(id);
    expect(state).toBe('planned');
    expect(guards.filter(({ exceeded }) => exceeded)).toMatchObject([
      { name: 'idColumn', count: 3, of: 3 },
      { name: 'looksDoubled', count: 3, of: 3 },
    ]);
    const refused = await transition(id, 'apply', ['idColumn']);
    expect([refused.status, refused.body.guards?.map(({ name }) => name)]).toEqual([409, ['looksDoubled']]);
    expect((await ended(id, 'apply', ['idColumn', 'looksDoubled'])).counts).toMatchObject({ created: 3 });
  });

  test('looksDoubled finds people by their email, too', async () => {
    await knowProvider();
    const file = (prefix: string) =>
      clientsCsv(many(3, 'c').map((id) => clientLine(`${prefix}${id}`, ['p-1'], `${id}@example.org`)));
    await imported('', [file('')]);
    const plan = await planned('', [file('x-')]);
    expect(plan.guards.filter(({ exceeded }) => exceeded).map(({ name }) => name)).toEqual(['looksDoubled']);
  });

  test('looksDoubled lets a few namesakes pass', async () => {
    await knowProvider();
    await imported('', [clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-1'])])]);
    const namesakes = ['x-1,,Cleo,c-1,p-1', 'x-2,,Cleo,c-2,p-1'];
    expect((await imported('', [clientsCsv(namesakes)])).counts).toMatchObject({ created: 2 });
  });

  test('idColumn compares clients with those of an import of providers and clients', async () => {
    await imported('columns=clients.externalId:ID', [providersCsv([providerLine('p-1')]), ambiguous(...three)]);
    const plan = await planned('columns=externalId:MRN', [ambiguous('4,M-4,Dan,Dew,p-1')]);
    expect(plan.guards.find(({ name }) => name === 'idColumn')).toMatchObject({ count: 3, exceeded: true });
  });

  test('idColumn does not stop an equal column with another spelling', async () => {
    await knowProvider();
    const file = (name: string, line: string) => csv('clients.csv', `${name},First Name,Last Name,Provider`, line);
    await imported('', [file('Patient ID', '1,Ann,Ash,p-1')]);
    await imported('', [file('patient_id', '2,Ben,Bay,p-1')]);
  });
});

test('empty and repeated ids are counted', async () => {
  await knowProvider();
  const lines = ['1,,Ann,Ash,p-1', '1,,Ann,Ash,p-1', ',,Ben,Bay,p-1', ',,Cy,Cole,p-1', '2,,Dan,Dew,p-1'];
  const view = await imported('columns=externalId:ID', [ambiguous(...lines)]);
  expect(view).toMatchObject({
    repeatedIds: 1,
    files: [{ rows: 5, emptyIds: 2 }],
    counts: { created: 2, rejected: 2 },
  });
});

describe('rejected.csv', () => {
  /** Rejects one provider, its client, and a client with an unknown provider. */
  async function rejects(): Promise<string[]> {
    const files = [
      providersCsv(['p-1,no mail,Pia,One']),
      clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-x'])]),
    ];
    const { id, counts } = await imported('', files);
    expect(counts).toMatchObject({ rejected: 3 });
    return rejected(id);
  }
  const again = (query: string, lines: string[]) => upload(query, 'text/csv', Buffer.from(`${lines.join('\r\n')}\r\n`));

  test('is rejected again while its code cells are filled', async () => {
    const { body } = await again('', await rejects());
    await world.settle();
    expect((await outcomes(body.id)).map(([id, , code]) => [id, code])).toEqual([
      ['p-1', 'not-corrected'],
      ['c-1', 'not-corrected'],
      ['c-2', 'not-corrected'],
    ]);
    expect(await rejected(body.id)).toHaveLength(4);
  });

  test('is accepted in any order once its rows are right and their code cells are empty', async () => {
    const [header = '', provider = '', ...clients] = (await rejects()).map((line) =>
      line
        .replace(/,(bad-email|unknown-provider),.*$/, ',,')
        .replace('no mail', 'p-1@example.org')
        .replace('p-x', 'p-1'),
    );
    const { status, body } = await again('kind=clients', [header, ...clients, provider]);
    expect(status).toBe(202);
    await settled(body.id);
    expect(await outcomes(body.id)).toEqual([
      ['c-1', 'created', null],
      ['c-2', 'created', null],
      ['p-1', 'created', null],
    ]);
  });

  test('is refused as a snapshot, because it would delete everyone else', async () => {
    const { status, body } = await again('mode=snapshot', await rejects());
    expect([status, body.type]).toEqual([422, expect.stringContaining('rejected-rows')]);
  });
});
