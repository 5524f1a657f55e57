import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { CsvRecords } from './csv/csv-records.js';
import { detectLayout } from './csv/layout.js';
import { type ReadFile, readAll } from './read-all.spec-support.js';
import type { ReadOptions } from './row/import-row.js';
import { UnreadableFile } from './row/rejection.js';
import { validatePerson } from './row/validate-person.js';
import { encodingOf } from './text/file-text.js';

type Options = Omit<ReadOptions, 'now'>;

/** Part of every cell of the valid files: no hint of a rejected row may contain it. */
const SECRET = 'Zyxwv';

const CSV = [
  'externalId,email,firstName,lastName,providers',
  'c-1,a@example.org,ZyxwvA,Roe,p-1|p-2',
  'c-2,,ZyxwvB,"Zyxwv, the ""second""",p-1',
  'c-3,zyxwv@example.org,"Zyxwv\r\nC",Doe,p-9',
  '',
  'c-4,not Zyxwv,Dee,Zyxwv,',
  '"c-5","","Zyxwv É","Zyxwv 😀","p-1"',
].join('\r\n');

const REJECTED = [
  'kind,externalId,email,firstName,lastName,providers,platformUserId,file,line,code,hint',
  "client,'=c-1,,Zyxwv,Zyxwv A,p-1|p-2,,f.csv,7,,",
  'provider,p-1,zyxwv@example.org,Zyxwv,Zyxwv A,,,f.csv,8,bad-email,Correct it.',
  'Total,,,,,,,,,,',
].join('\n');

const person = (id: string, more: object = {}) => ({ externalId: id, firstName: 'ZyxwvA', lastName: 'Zyxwv', ...more });
const NDJSON = [
  person('c-1'),
  person('c-2', { email: 'zyxwv @x', providers: ['p-1'] }),
  person('c-3', { room: 1 }),
  person('c 4'),
]
  .map((value) => JSON.stringify(value))
  .join('\n');

const RESOURCES = [
  {
    resourceType: 'Practitioner',
    id: 'p1',
    identifier: [{ system: 'urn:npi', value: '9' }],
    name: [{ family: 'Zyxwv', given: ['ZyxwvA'] }],
    telecom: [{ system: 'email', value: 'zyxwv@example.org', rank: 1 }],
  },
  {
    resourceType: 'Patient',
    id: 'c1',
    name: [{ use: 'official', text: 'Dr. Zyxwv Roe', prefix: ['Dr.'] }],
    generalPractitioner: [{ reference: 'PractitionerRole/r1' }],
  },
  { resourceType: 'PractitionerRole', id: 'r1', practitioner: { identifier: { system: 'urn:npi', value: '9' } } },
  {
    resourceType: 'Encounter',
    status: 'finished',
    subject: { reference: 'Patient/c1' },
    period: { start: '2020-01-01' },
    participant: [{ individual: { reference: 'Practitioner?identifier=urn:npi|9' } }],
  },
  { resourceType: 'Organization', id: 'o1' },
];
const FHIR = RESOURCES.map((resource) => JSON.stringify(resource)).join('\n');
const BUNDLE = JSON.stringify(
  { resourceType: 'Bundle', entry: RESOURCES.map((resource, i) => ({ fullUrl: `urn:uuid:${i}`, resource })) },
  null,
  1,
);

const SEEDS: { file: string; options: Options }[] = [
  { file: CSV, options: { format: 'csv', kind: 'clients' } },
  { file: CSV, options: { format: 'csv', kind: 'providers' } },
  { file: CSV, options: { format: 'csv', kind: 'clients', whole: true, columns: { firstName: 'email' } } },
  { file: CSV.replace('externalId', 'MRN,id'), options: { format: 'csv', kind: 'clients' } },
  { file: REJECTED, options: { format: 'csv', kind: 'clients' } },
  { file: CSV.replaceAll(',', ';').replaceAll('\r\n', '\r'), options: { format: 'csv', kind: 'clients' } },
  { file: NDJSON, options: { format: 'ndjson', kind: 'clients' } },
  { file: FHIR, options: { format: 'fhir-ndjson', kind: 'fhir' } },
  { file: FHIR, options: { format: 'fhir-ndjson', kind: 'fhir', idSystems: ['urn:npi'] } },
  { file: BUNDLE, options: { format: 'fhir-json', kind: 'fhir' } },
];

/** Texts that tend to break readers. */
const TOKENS = [
  '"',
  '""',
  ',',
  ';',
  '\t',
  '|',
  '\n',
  '\r',
  '\r\n',
  '\u0000',
  '\ufeff',
  '\\ud800',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ':',
  'null',
  '1e999',
  ' ',
  '😀',
  '=',
  '{"toString":1}',
  '"__proto__"',
  'line,code,hint',
  'Total',
  '1.5E+10',
];

type Edit = { at: number; cut: number; put: Buffer };

const put = fc.oneof(
  fc.constantFrom(...TOKENS).map((token) => Buffer.from(token)),
  fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom('a', '"', '[', '\n').map((unit) => Buffer.from(unit.repeat(300))),
);
const edit: fc.Arbitrary<Edit> = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  cut: fc.constantFrom(0, 0, 1, 2, 40),
  put,
});

function mutate(file: Buffer, edits: Edit[]): Buffer {
  return edits.reduce((bytes, { at, cut, put }) => {
    const place = Math.floor(at * bytes.length);
    return Buffer.concat([bytes.subarray(0, place), put, bytes.subarray(place + cut)]);
  }, file);
}

const mutated = fc
  .tuple(fc.constantFrom(...SEEDS), fc.array(edit, { minLength: 1, maxLength: 4 }))
  .map(([{ file, options }, edits]) => ({ bytes: mutate(Buffer.from(file), edits), options }));
const random = fc
  .tuple(fc.uint8Array({ maxLength: 200 }), fc.constantFrom(...SEEDS))
  .map(([bytes, { options }]) => ({ bytes: Buffer.from(bytes), options }));
const text = fc
  .tuple(
    fc.array(fc.constantFrom(...TOKENS, 'id', 'first', 'last', 'email', 'a'), { maxLength: 40 }),
    fc.constantFrom(...SEEDS),
    fc.boolean(),
  )
  .map(([tokens, { file, options }, headed]) => {
    const header = headed ? `${file.split(/\r\n?|\n/)[0]}\n` : '';
    return { bytes: Buffer.from(header + tokens.join('')), options };
  });
const limits: fc.Arbitrary<ReadOptions['limits']> = fc.constantFrom(undefined, undefined, { row: 100, cell: 20 });
const input = fc.tuple(
  fc.oneof({ weight: 7, arbitrary: mutated }, random, { weight: 2, arbitrary: text }),
  limits,
  fc.constantFrom(1, 7, 1000, 100_000),
);

/** Lines and entries that give no row: resources that are not people. */
function isSupporting(resource: unknown): boolean {
  const { resourceType } = (resource ?? {}) as { resourceType?: unknown };
  return typeof resourceType === 'string' && !['Practitioner', 'Patient', 'Bundle'].includes(resourceType);
}

/** Records of a CSV file that give no row: blank ones, repeated headers, and totals. */
function isNoRow(cells: readonly string[], header: readonly string[]): boolean {
  const filled = cells.map((cell) => cell.trim());
  const names = header.map((name) => name.trim());
  const isHeader = filled.join('\0').replace(/\0+$/, '') === names.join('\0').replace(/\0+$/, '');
  return isHeader || /^(|(grand |sub)?totals?:?)$/i.test(filled.find((cell) => cell !== '') ?? '');
}

/** The text of a file as it is decoded. */
function textOf(bytes: Buffer): string {
  return new TextDecoder(encodingOf(bytes)).decode(bytes);
}

/** Every record of the file gives one row, in order, or is one that gives none. */
function accountHolds(bytes: Buffer, { format, kind, columns, limits }: Options, file: ReadFile): void {
  const text = textOf(bytes);
  const lines = [...file.rows, ...file.records].map(({ line }) => line);
  if (format === 'fhir-json') {
    const bundle = parsed(text) as { entry?: unknown } | undefined;
    if (!Array.isArray(bundle?.entry)) return;
    const others = bundle.entry.filter(({ resource }) => isSupporting(resource));
    expect(lines).toHaveLength(bundle.entry.length - others.length);
    return;
  }
  const left = new Set(lines);
  expect(left.size).toBe(lines.length);
  if (format !== 'csv') {
    for (const [at, line] of text.split('\n').entries()) {
      if (!left.delete(at + 1)) expect(line.trim() === '' || isSupporting(parsed(line))).toBe(true);
    }
  } else {
    const { dialect, headerLine } = detectLayout(text, kind, columns);
    const records = new CsvRecords(dialect, limits?.row ?? 1024 * 1024).push(text, true);
    for (const record of records) {
      if (record.line <= headerLine || left.delete(record.line)) continue;
      expect('cells' in record && isNoRow(record.cells, file.header)).toBe(true);
    }
  }
  expect([...left]).toEqual([]);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function rowsAreSound({ rows, mapping }: ReadFile): void {
  const examples = mapping?.columns.map(({ example }) => example).join('') ?? '';
  expect(examples).not.toMatch(/(?!x)\p{L}|(?!9)\p{N}/u);
  for (const row of rows) {
    if (row.is === 'person') expect(validatePerson(row.person)).toEqual(row.person);
    if (row.is !== 'rejected') continue;
    expect(row.hint).not.toBe('');
    expect(row.externalId ?? '').not.toMatch(/\p{Cc}|\p{Cs}/u);
    // The hint names an unknown field, because it must be changed.
    if (row.code === 'unknown-field') continue;
    expect([row.code, row.field, row.hint].join(' ').toLowerCase()).not.toContain(SECRET.toLowerCase());
  }
}

describe('the readers under hostile inputs', () => {
  it('refuse a file or account for every record of it, and say nothing personal', async () => {
    const outcomes = { read: 0, refused: 0, rows: 0 };
    const property = fc.asyncProperty(input, async ([{ bytes, options }, limits, chunk]) => {
      let file: ReadFile;
      try {
        file = await readAll(bytes, { ...options, limits }, chunk);
      } catch (error) {
        if (!(error instanceof UnreadableFile)) throw error;
        expect(error.line).toBeGreaterThan(0);
        outcomes.refused++;
        return;
      }
      accountHolds(bytes, { ...options, limits }, file);
      rowsAreSound(file);
      outcomes.read++;
      outcomes.rows += file.rows.length + file.records.length;
    });
    await fc.assert(property, propertyRuns());
    // Otherwise most files would be refused, and the property would be empty.
    expect(outcomes.read).toBeGreaterThan(propertyRuns().numRuns / 4);
    expect(outcomes.rows).toBeGreaterThan(propertyRuns().numRuns / 2);
  });

  it('do not depend on the chunks', async () => {
    const property = fc.asyncProperty(mutated, limits, async ({ bytes, options }, limits) => {
      const read = (chunk: number) =>
        readAll(bytes, { ...options, limits }, chunk).catch((error: unknown) => String(error));
      expect(await read(1)).toEqual(await read(bytes.length));
    });
    await fc.assert(property, propertyRuns());
  });
});
