import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { formOf } from './import-files.js';

const folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-import-files-'));

function file(name: string): string {
  writeFileSync(path.join(folder, name), 'four');
  return path.join(folder, name);
}

/** The files of a form as `field:name`. */
async function parts(names: string[], kind?: 'providers' | 'clients' | 'fhir'): Promise<string[]> {
  const { form } = await formOf(names.map(file), kind);
  return [...form.entries()].map(([field, value]) => `${field}:${(value as File).name}`);
}

test('sends provider files first, and keeps the order of the others', async () => {
  const names = ['patients_by_provider.csv', 'a.csv', 'Therapists.csv', 'clients.csv', 'providers.csv'];
  expect(await parts(names)).toEqual(
    ['Therapists.csv', 'providers.csv', 'patients_by_provider.csv', 'a.csv', 'clients.csv'].map(
      (name) => `file:${name}`,
    ),
  );
});

test.each([
  ['providers', 'providers:x.csv'],
  ['clients', 'clients:x.csv'],
  ['fhir', 'file:x.csv'],
] as const)('--kind %s: sends the part %s', async (kind, part) => expect(await parts(['x.csv'], kind)).toEqual([part]));

test.each([
  ['x.CSV', 'text/csv'],
  ['x.tsv', 'text/csv'],
  ['x.txt', 'text/csv'],
  ['x.ndjson', 'application/x-ndjson'],
  ['x.jsonl', 'application/x-ndjson'],
  ['x.json', 'application/fhir+json'],
  ['x.xlsx', 'application/octet-stream'],
  ['x', 'application/octet-stream'],
])('%s is sent as %s', async (name, type) => {
  const { form, bytes } = await formOf([file(name)]);
  expect([(form.get('file') as File).type, bytes]).toEqual([type, 4]);
});

test('rejects a missing file and a folder before sending anything', async () => {
  await expect(formOf([path.join(folder, 'missing.csv')])).rejects.toThrow('does not exist');
  await expect(formOf([file('x.csv'), folder])).rejects.toThrow('is a folder');
});
