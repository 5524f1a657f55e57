import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ImportFile } from '../../harness/service.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { useWorld } from '../world/use-world.js';
import { type ImportBody, importsIn } from './imports.js';

const FOLDER = path.join(__dirname, 'field-cases');
const TYPES: Record<string, string> = { '.ndjson': 'application/fhir+ndjson', '.json': 'application/fhir+json' };

const world = useWorld();
const { uploadFiles, map, rows, transition, settled, show } = importsIn(world);

/** A real shape of an export, and its right outcome. */
interface FieldCase {
  /** Continues the title of the test. */
  rule: string;
  folder: string;
  /** The names of the parts in which files are sent, by name of the file. */
  files: Record<string, string>;
  query?: string;
  /** External ids of providers that exist before the import. */
  known?: string[];
  /** External ids of clients of the first of them that exist, too. */
  knownClients?: string[];
  /** The fields that the import asks for, and the columns that are then chosen. */
  asks?: { fields: string[]; columns: Record<string, string> };
  /** The import waits for `apply`. */
  isPlan?: true;
  /** The status, and the beginning or a part of the detail, of an upload that is refused. */
  refused?: [status: number, detail: string];
  /** By external id: the stored person, otherwise outcome and code of the row. */
  people?: Record<string, string>;
  /** Parts of the hints of rows, by external id. */
  hints?: Record<string, string>;
  view?: Partial<ImportBody>;
}

const CASES: FieldCase[] = [
  {
    rule: 'two practitioners with one identifier leave its references unresolved',
    folder: 'ambiguous-role',
    files: { 'input.ndjson': 'fhir' },
    people: {
      bob: 'Bob Bober <bob.bober@clinic.example.org>',
      sandy: 'Sandy Sands <sandy.sands@clinic.example.org>',
      c1: 'Ann Ash [bob]',
      c2: 'rejected unresolved-provider',
      c3: 'rejected unresolved-provider',
      c4: 'Dan Dew [bob]',
    },
    hints: { c2: 'Two or more practitioners', c3: 'role' },
  },
  {
    rule: 'a client keeps the providers who can be mirrored',
    folder: 'careteam-mixed',
    files: { 'input.ndjson': 'fhir' },
    people: {
      p1: 'Ada Osei <ada.osei@clinic.example.org>',
      noemail: 'rejected missing-field',
      t1: 'Team Absent [p1]',
      t2: 'Team Rejected [p1]',
      t3: 'Gp Mixed [p1]',
      t4: 'Enc Mixed [p1]',
    },
    view: { lostProviders: 4 },
  },
  {
    rule: 'a contained practitioner counts by its identifier; a hint says why another reference does not',
    folder: 'contained',
    files: { 'input.ndjson': 'fhir' },
    people: {
      p1: 'Ada Osei <ada.osei@clinic.example.org>',
      p9: 'Ben Lund <nine@clinic.example.org>',
      k1: 'Kay One [p9]',
      k2: 'rejected unresolved-provider',
      k3: 'rejected unresolved-provider',
      k4: 'rejected unresolved-provider',
      k5: 'rejected no-provider',
    },
    hints: { k2: 'display', k3: 'organization', k4: 'organization', k5: 'default provider' },
  },
  {
    rule: 'an unknown default provider is refused when the upload starts',
    folder: 'default-unknown',
    files: { 'input.csv': 'clients' },
    known: ['P'],
    query: 'defaultProvider=Pp',
    refused: [422, 'The default provider Pp is unknown.'],
  },
  {
    rule: 'providers without an email column are refused, naming the columns',
    folder: 'dentrix',
    files: { 'providers.csv': 'providers' },
    refused: [422, 'No column is known to be email. The file has the columns Provider ID, Last Name'],
  },
  {
    rule: 'a hint names ignored columns that may contain providers',
    folder: 'dentrix',
    files: { 'patients.csv': 'clients' },
    known: ['T1'],
    people: { 1001: 'rejected no-provider', 1002: 'rejected no-provider', 1004: 'skipped inactive' },
    hints: { 1001: 'Prim Prov, Sec Prov', 1002: 'default provider' },
  },
  {
    rule: 'a default provider is for clients that name none, and a status marks people who are gone',
    folder: 'dentrix',
    files: { 'patients.csv': 'clients' },
    known: ['T1'],
    query: 'defaultProvider=T1',
    people: {
      1001: "Maria O'Brien <maria@example.com> [T1]",
      1002: "Sam O'Brien [T1]",
      1004: 'skipped inactive',
    },
  },
  {
    rule: 'placeholders are empty, and the first usable address of a cell counts',
    folder: 'email-placeholder',
    files: { 'input.csv': 'clients' },
    known: ['P'],
    people: {
      c1: 'Ann Ash [P]',
      c2: 'Bob Bay [P]',
      c3: 'Cat Cole [P]',
      c4: 'Dan Dew [P]',
      c5: 'Eva Elm [P]',
      c6: 'Fay Fox <fay@example.org> [P]',
      c7: 'Gus Gray <gus@example.org> [P]',
      c8: 'Hal Hill <hal@example.org> [P]',
      c9: 'Ida Ives <noemail@noemail.com> [P]',
      c10: 'needsReview email-taken',
    },
  },
  {
    rule: 'the first usable email counts; a Direct address comes last',
    folder: 'emails',
    files: { 'input.ndjson': 'fhir' },
    people: {
      p1: 'Ada Osei <ada.osei@clinic.example.org>',
      e1: 'Em One <em@example.org> [p1]',
      e2: 'Em Two <em2@example.org> [p1]',
      e3: 'Em Three [p1]',
      pe: 'Pe Four <pe@clinic.example.org>',
      pd: 'Pd Five <pd@clinic.example.org>',
    },
  },
  {
    rule: 'unknown names of required columns are asked for',
    folder: 'epic-ehi',
    files: { 'input.tsv': 'clients' },
    known: ['144'],
    asks: {
      fields: ['externalId', 'firstName', 'lastName'],
      columns: {
        ...{ externalId: 'PAT_ID', firstName: 'PAT_FIRST_NAME', lastName: 'PAT_LAST_NAME' },
        providers: 'CUR_PCP_PROV_ID',
      },
    },
    people: { Z1: 'Iona Vale <iona.vale@example.org> [144]' },
  },
  {
    rule: 'equal resources of several files count once',
    folder: 'everything',
    files: { 'pat-a.json': 'fhir', 'pat-b.json': 'fhir', 'pat-c.json': 'fhir' },
    people: {
      p1: 'Ada Osei <ada.osei@clinic.example.org>',
      ...{ a: 'Ann Ash [p1]', b: 'Bob Bay [p1]', c: 'Cat Cole [p1]' },
    },
    view: { repeatedIds: 1, needAttention: 0 },
  },
  {
    rule: 'the newest entry of a history decides: a deleted person is never created',
    folder: 'history',
    files: { 'input.json': 'fhir' },
    people: {
      c9: 'skipped already-deleted',
      p1: 'Ada Osei <ada.osei@clinic.example.org>',
      c8: 'New Name [p1]',
    },
    view: { needAttention: 0 },
  },
  {
    rule: 'a client is written to at home',
    folder: 'home-work-email',
    files: { 'input.csv': 'clients' },
    known: ['P'],
    people: { c1: 'Ann Ash <ann@home.example.org> [P]', c2: 'Bob Bay <bob@home.example.org> [P]' },
  },
  {
    rule: 'inactive and deceased people get no account',
    folder: 'inactive',
    files: { 'input.ndjson': 'fhir' },
    people: {
      p1: 'Ada Osei <ada.osei@clinic.example.org>',
      px: 'skipped inactive',
      c1: 'Live Client [p1]',
      ...{ c2: 'skipped inactive', c3: 'skipped inactive', c4: 'skipped inactive' },
    },
  },
  {
    rule: 'a chart that was merged in the EHR and is here must be merged here, too',
    folder: 'merged-chart',
    files: { 'input.json': 'fhir' },
    known: ['P'],
    knownClients: ['G-old'],
    people: { 'G-new': 'Ann Sample [P]', 'G-old': 'rejected merge-needed' },
    hints: { 'G-old': 'POST /v1/clients/G-old/merge {"into": "G-new"}' },
    view: { needAttention: 1, reasons: [{ outcome: 'rejected', code: 'merge-needed', rows: 1 }] },
  },
  {
    rule: 'a chart that was merged in the EHR and is not here needs nothing',
    folder: 'merged-chart',
    files: { 'input.json': 'fhir' },
    known: ['P'],
    people: { 'G-new': 'Ann Sample [P]', 'G-old': 'skipped merged-record' },
    hints: { 'G-old': 'Nothing needs to be done' },
    view: { needAttention: 0 },
  },
  {
    rule: 'two columns that could be the id are asked for',
    folder: 'mrn-and-id',
    files: { 'input.csv': 'clients' },
    known: ['P'],
    asks: { fields: ['externalId'], columns: { externalId: 'Patient ID' } },
    people: { 101: 'Ann Ash [P]', 102: 'Ben Bay [P]', 103: 'Cy Cole [P]' },
  },
  {
    rule: 'the first complete current name counts, and a text is not split',
    folder: 'names',
    files: { 'input.ndjson': 'fhir' },
    people: {
      p1: 'Ada Osei <ada.osei@clinic.example.org>',
      n1: 'Ana María de la Cruz [p1]',
      n2: 'Jim Roe [p1]',
      n3: 'rejected unsplit-name',
      n4: 'rejected missing-field',
      n5: 'Pat Chell [p1]',
      n6: 'Zoë O’Neil [p1]',
    },
  },
  {
    rule: 'files of one export may have ids in different columns',
    folder: 'openemr',
    files: { 'users.csv': 'providers', 'patient_data.csv': 'clients' },
    asks: {
      fields: ['externalId'],
      columns: { 'providers.externalId': 'id', 'clients.externalId': 'pid' },
    },
    people: {
      5: 'Jane Smith <jane.smith@clinic.example.org>',
      6: 'Robin Lee <robin.lee@clinic.example.org>',
      101: 'Ana Roe <ana@example.org> [5]',
      102: 'Ben Roe [6]',
    },
  },
  {
    rule: 'columns in another language are asked for',
    folder: 'other-language',
    files: { 'input.csv': 'clients' },
    known: ['P'],
    asks: {
      fields: ['externalId', 'firstName', 'lastName'],
      columns: {
        ...{ externalId: 'Patientennummer', firstName: 'Vorname', lastName: 'Nachname', providers: 'Behandler' },
      },
    },
    people: { 1: 'Änne Öztürk <a@example.org> [P]' },
  },
  {
    rule: 'pages that link to each other are one export',
    folder: 'paged-snapshot',
    files: { 'page1.json': 'fhir', 'page2.json': 'fhir' },
    query: 'mode=snapshot',
    isPlan: true,
    people: { p1: 'Ada Osei <ada.osei@clinic.example.org>', a: 'Ann Ash [p1]', b: 'Bob Bay [p1]' },
  },
  {
    rule: 'a page without the next one is refused as a snapshot',
    folder: 'paged-snapshot',
    files: { 'page1.json': 'fhir' },
    query: 'mode=snapshot',
    refused: [422, 'page1.json is one page of a search, and the page after it is missing.'],
  },
  {
    rule: 'of two provider columns, the one whose name ends in id counts',
    folder: 'provider-and-id',
    files: { 'input.csv': 'clients' },
    known: ['P'],
    people: { 101: 'Ann Ash [P]' },
  },
  {
    rule: 'a hint says that ids are expected, not names, and how to separate several',
    folder: 'provider-names',
    files: { 'input.csv': 'clients' },
    known: ['7', '8'],
    people: Object.fromEntries(['c1', 'c2', 'c3', 'c4', 'c5', 'c6'].map((id) => [id, 'rejected unknown-provider'])),
    hints: {
      ...{ c1: 'not their names', c2: 'not their names', c3: 'not their names' },
      ...{ c4: 'separate several ids with |', c5: 'separate several ids with |', c6: 'external ids' },
    },
  },
  {
    rule: 'an absolute reference means its own server only',
    folder: 'two-servers',
    files: { 'input.json': 'fhir' },
    people: {
      1: 'Ada Osei <ada.osei@clinic.example.org>',
      10: 'Own Doctor [1]',
      11: 'rejected unresolved-provider',
    },
    hints: { 11: 'server' },
  },
];

function filesOf({ folder, files }: FieldCase): (ImportFile & { part: string })[] {
  return Object.entries(files).map(([name, part]) => {
    const content = readFileSync(path.join(FOLDER, folder, name));
    return { name, part, type: TYPES[path.extname(name)] ?? 'text/csv', content };
  });
}

/** The cells of CSV files that are long enough to be recognized. */
function cellsOf(files: readonly ImportFile[]): string[] {
  const lines = files.flatMap(({ content }) => String(content).split('\n').slice(1));
  return lines.flatMap((line) => line.split(/[,;\t]/)).filter((cell) => cell.trim().length > 3);
}

/** The person as the service shows it, such as `Ann Ash <ann@example.org> [p-1]`. */
async function described(kind: string, id: string): Promise<string> {
  const { body } = await world.call<PersonResponse>('GET', `/v1/${kind}s/${id}`);
  const { firstName, lastName, email, providers } = body;
  return [`${firstName} ${lastName}`, ...(email ? [`<${email}>`] : []), ...(providers ? [`[${providers}]`] : [])].join(
    ' ',
  );
}

async function outcomesOf(id: string): Promise<{ people: Record<string, string>; hints: Record<string, string> }> {
  const people: Record<string, string> = {};
  const hints: Record<string, string> = {};
  for (const { kind, externalId, outcome, code, hint } of await rows(id)) {
    // An equal or older row of a person who is there.
    if (code === 'repeated' || code === 'older-version' || !kind || externalId === null) continue;
    people[externalId] = outcome === 'created' ? await described(kind, externalId) : `${outcome} ${code}`;
    hints[externalId] = hint ?? '';
  }
  return { people, hints };
}

/** The import asks for fields, and its columns are shown without a person's data. */
function expectQuestion(body: ImportBody, fields: string[], files: readonly ImportFile[]): void {
  const mappings = body.files.flatMap(({ mapping }) => mapping ?? []);
  const asked = new Set(mappings.flatMap(({ question }) => question?.fields ?? []));
  expect([body.state, [...asked]]).toEqual(['needs-mapping', fields]);
  const examples = mappings.flatMap(({ columns }) => columns.map(({ example }) => example)).join('');
  expect(examples).toMatch(/^(?:[x9]|[^\p{L}\p{N}])+$/u);
  const shown = JSON.stringify(body);
  expect(cellsOf(files).filter((cell) => shown.includes(cell))).toEqual([]);
}

describe('an export', () => {
  test.each(CASES.map((one) => [`${one.folder}: ${one.rule}`, one] as const))('%s', async (_, one) => {
    for (const id of one.known ?? []) {
      const body = { email: `known-${id}@clinic.example.org`, firstName: 'Pat', lastName: 'Ng' };
      await world.call('PUT', `/v1/providers/${id}`, { body, wait: 60 });
    }
    for (const id of one.knownClients ?? []) {
      const body = { firstName: 'Ann', lastName: 'Sample', providers: one.known };
      await world.call('PUT', `/v1/clients/${id}`, { body, wait: 60 });
    }
    const files = filesOf(one);
    const { status, body } = await uploadFiles(one.query ?? '', files);
    if (one.refused)
      return expect([status, body.detail]).toEqual([one.refused[0], expect.stringContaining(one.refused[1])]);
    if (one.asks) {
      expectQuestion(body, one.asks.fields, files);
      expect((await map(body.id, one.asks.columns)).status).toBe(202);
    }
    await settled(body.id);
    if (one.isPlan) {
      expect((await transition(body.id, 'apply')).status).toBe(202);
      await settled(body.id);
    }
    const found = await outcomesOf(body.id);
    expect(found.people).toEqual(one.people);
    for (const [id, part] of Object.entries(one.hints ?? {}))
      expect([id, found.hints[id]]).toEqual([id, expect.stringContaining(part)]);
    expect(await show(body.id)).toMatchObject({ state: 'completed', ...one.view });
  });
});
