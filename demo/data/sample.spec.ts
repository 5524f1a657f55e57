import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readAll } from '../../src/imports/parse/read-all.spec-support.js';

const read = (kind: 'providers' | 'clients') =>
  readAll(readFileSync(join(__dirname, `${kind}.csv`)), { format: 'csv', kind });

describe('the sample EHR export', () => {
  it('contains the documented problems, and no file errors', async () => {
    const [providers, clients] = await Promise.all([read('providers'), read('clients')]);
    const people = [...providers.rows, ...clients.rows].map((row) => (row.is === 'person' ? row.person : undefined));
    expect(people).not.toContain(undefined);
    const known = people.flatMap((person) => (person?.kind === 'provider' ? [person.externalId] : []));
    const patients = people.flatMap((person) => (person?.kind === 'client' ? [person] : []));
    expect([known.length, patients.length]).toEqual([12, 30]);
    expect(new Set(patients.map(({ externalId }) => externalId)).size).toBe(29);
    expect(patients.filter(({ email }) => !email)).toHaveLength(6);
    expect(patients.filter(({ providers }) => !providers?.some((id: string) => known.includes(id)))).toHaveLength(1);
    const emails = people.flatMap((person) => person?.email ?? []);
    expect(emails.length - new Set(emails).size).toBe(1);
    for (const email of emails) expect(email).toMatch(/@example\.(com|org)$/);
  });
});
