import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { type ReadFile, readAll } from './read-all.spec-support.js';
import type { ReadOptions } from './row/import-row.js';
import { UnreadableFile } from './row/rejection.js';
import { validatePerson } from './row/validate-person.js';

type Options = Omit<ReadOptions, 'now'>;

/** Stands in every cell of the valid files: nothing that holds it may be told about a rejected row. */
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
  { file: CSV.replaceAll(',', ';').replaceAll('\r\n', '\r'), options: { format: 'csv', kind: 'clients' } },
  { file: NDJSON, options: { format: 'ndjson', kind: 'clients' } },
  { file: FHIR, options: { format: 'fhir-ndjson', kind: 'fhir' } },
  { file: FHIR, options: { format: 'fhir-ndjson', kind: 'fhir', idSystems: ['urn:npi'] } },
  { file: BUNDLE, options: { format: 'fhir-json', kind: 'fhir' } },
];

/** What tends to break readers. */
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
  'line,code,hint,check',
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

/** The lines of a file, without the nothing behind its last line end. */
function physicalLines(file: Buffer, format: ReadOptions['format']): string[] {
  const whole = file.toString('utf8').replace(/^\ufeff/, '');
  const ends = /[\r\n]/.exec(whole.trimStart().replace(/"[^"]*("|$)/g, ''));
  const oldMac = format === 'csv' && ends?.[0] === '\r' && ends.input[ends.index + 1] !== '\n';
  const lines = whole.split(oldMac ? '\r' : '\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

/** Whether a line or entry may go without a row: a resource that is no person. */
function isSupporting(resource: unknown): boolean {
  const { resourceType } = (resource ?? {}) as { resourceType?: unknown };
  return typeof resourceType === 'string' && !['Practitioner', 'Patient', 'Bundle'].includes(resourceType);
}

/** Letters and digits of a header, whatever stands between them. */
function bare(text: string): string {
  return text.replace(/[^\p{L}\p{N}]/gu, '');
}

/** Every line is covered once, by a row or because nothing stands on it that could be one; likewise every entry of a Bundle. */
function accountHolds(bytes: Buffer, { format }: Options, { columns, rows }: ReadFile): void {
  if (format === 'fhir-json') {
    const bundle = parsed(bytes.toString('utf8').replace(/^\ufeff/, '')) as { entry?: unknown } | undefined;
    if (!Array.isArray(bundle?.entry)) return;
    const untold = bundle.entry.filter(({ resource }) => isSupporting(resource));
    expect(rows).toHaveLength(bundle.entry.length - untold.length);
    return;
  }
  const lines = physicalLines(bytes, format);
  let next = 1;
  const untold: string[] = [];
  const heading = lines.findIndex((line) => bare(line).startsWith(bare(columns.join(''))));
  for (const { line, span } of [...rows, { line: lines.length + 1, span: 0 }]) {
    expect(line).toBeGreaterThanOrEqual(next);
    const from = format === 'csv' ? Math.max(next - 1, heading + 1) : next - 1;
    if (heading >= 0) untold.push(...lines.slice(from, line - 1));
    next = line + span;
  }
  expect(next).toBe(lines.length + 1);
  for (const line of untold.filter((line) => !/^[\s,;"]*$/.test(line))) {
    if (format === 'csv') expect(bare(line)).toContain(bare(columns.join('')));
    else expect(isSupporting(parsed(line))).toBe(true);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function rowsAreSound({ rows }: ReadFile): void {
  for (const row of rows) {
    expect(() => JSON.parse(row.raw)).not.toThrow();
    if (row.ok) {
      expect(validatePerson(row.person)).toEqual(row.person);
      continue;
    }
    expect(row.hint).not.toBe('');
    expect(row.externalId ?? '').not.toMatch(/\p{Cc}|\p{Cs}/u);
    // The name of an unknown field is told, since it is what must be changed.
    if (row.code === 'unknown-field') continue;
    expect([row.code, row.field, row.hint].join(' ').toLowerCase()).not.toContain(SECRET.toLowerCase());
  }
}

describe('the readers under hostile inputs', () => {
  it('refuse a file by name or account for every line of it, and tell nothing personal', async () => {
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
      accountHolds(bytes, options, file);
      rowsAreSound(file);
      outcomes.read++;
      outcomes.rows += file.rows.length;
    });
    await fc.assert(property, propertyRuns());
    // The law would hold of nothing if nearly everything were refused.
    expect(outcomes.read).toBeGreaterThan(propertyRuns().numRuns / 4);
    expect(outcomes.rows).toBeGreaterThan(propertyRuns().numRuns / 2);
  });

  it('say the same however the bytes were cut', async () => {
    const property = fc.asyncProperty(mutated, limits, async ({ bytes, options }, limits) => {
      const read = (chunk: number) =>
        readAll(bytes, { ...options, limits }, chunk).catch((error: unknown) => String(error));
      expect(await read(1)).toEqual(await read(bytes.length));
    });
    await fc.assert(property, propertyRuns());
  });
});
