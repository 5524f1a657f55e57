import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { ProviderReferences } from './fhir/provider-references.js';
import { collect, NOW } from './read-all.spec-support.js';
import { readPeople } from './read-people.js';
import type { ReadRow, ResourceReference } from './row/import-row.js';

/** All encounters name providers. */
const EVER = new Date('1900-01-01');

const DATA = join(process.cwd(), '../shared/data');
const present = existsSync(DATA);
if (!present) process.stderr.write('LEFT OUT: reading Synthea data, since ../shared/data is not here.\n');

async function read(set: string, resources: string[], idSystems: string[] = []) {
  const rows: ReadRow[] = [];
  const facts: ResourceReference[] = [];
  for (const resource of resources) {
    const file = createReadStream(join(DATA, set, `${resource}.000.ndjson`)) as AsyncIterable<Buffer>;
    const options = { format: 'fhir-ndjson', kind: 'fhir', idSystems, now: NOW, encounterSince: EVER } as const;
    const part = await collect(readPeople(file, options));
    rows.push(...part.rows);
    facts.push(...part.facts);
  }
  return { rows, facts };
}

const count = (rows: ReadRow[], kind: string) =>
  rows.filter((row) => (row.is === 'person' ? row.person.kind : row.kind) === kind).length;

/** Reasons and numbers of rejected rows. */
const rejected = (rows: ReadRow[]) => {
  const reasons = rows.flatMap((row) => (row.is === 'rejected' ? [`${row.kind} ${row.code} ${row.field}`] : []));
  return Object.fromEntries(
    [...new Set(reasons)].map((reason) => [reason, reasons.filter((r) => r === reason).length]),
  );
};

(present ? describe : describe.skip)('Synthea populations', () => {
  it('of ten: every patient finds the providers of its encounters', async () => {
    const { rows, facts } = await read('synthea-10', ['Encounter', 'PractitionerRole', 'Patient', 'Practitioner']);
    expect([count(rows, 'client'), count(rows, 'provider')]).toEqual([13, 43]);
    expect(rejected(rows)).toEqual({});

    const references = new ProviderReferences(1_000_000);
    for (const event of [...rows, ...facts]) references.add(event);
    const resolved = references.resolve({ mirrorable: new Set(references.candidates()), rejected: new Set() });
    expect(resolved.size).toBe(13);
    for (const { providers, lost } of resolved.values()) {
      expect(providers.length).toBeGreaterThan(0);
      expect([...lost]).toEqual([]);
    }
  });

  it('of a thousand: every person is a row or a reject with its reason', async () => {
    const { rows } = await read('synthea-1000', ['PractitionerRole', 'Patient', 'Practitioner']);
    expect([count(rows, 'client'), count(rows, 'provider')]).toEqual([1144, 835]);
    // The names of seven practitioners contain a blank, and so do their addresses.
    expect(rejected(rows)).toEqual({ 'provider bad-email email': 7 });
    expect(rows.filter((row) => row.is === 'person' && row.person.kind === 'client')).toHaveLength(1000);
    // Deceased patients.
    expect(rows.filter(({ is }) => is === 'gone')).toHaveLength(144);
  });

  it('an identifier becomes the external id if its system is chosen', async () => {
    const { rows } = await read(
      'synthea-10',
      ['Practitioner', 'Patient'],
      ['http://hl7.org/fhir/sid/us-npi', 'http://hospital.smarthealthit.org'],
    );
    expect(rejected(rows)).toEqual({});
    expect(rows[0]).toMatchObject({ person: { kind: 'provider', externalId: expect.stringMatching(/^\d{10}$/) } });
  });
});
