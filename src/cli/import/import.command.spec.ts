import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import type { Api } from '../api/api.js';
import { addImportCommands } from './import.command.js';

const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'notebridge-import-')), 'export.csv');
writeFileSync(file, 'PAT_ID\nC-1\n');

beforeEach(() => {
  jest.spyOn(console, 'log').mockImplementation();
  jest.spyOn(console, 'error').mockImplementation();
  jest.spyOn(process.stderr, 'write').mockReturnValue(true);
});

/** Runs a command. @returns its requests, as path and body */
async function posted(...args: string[]): Promise<[path: string, body: unknown][]> {
  const requests: [string, unknown][] = [];
  const post = async (at: string, body: unknown) => {
    requests.push([decodeURIComponent(at), body instanceof FormData ? [...body.keys()] : body]);
    return { id: 'i1' };
  };
  const program = new Command().exitOverride();
  addImportCommands(program, { post } as unknown as Api);
  await program.parseAsync([...args, '--no-wait', '--json'], { from: 'user' });
  return requests;
}

const columns = ['--column', 'externalId=PAT_ID', '--column', 'clients.firstName=Vor=name'];

test('sends files as a form, without a kind by default', async () => {
  expect(await posted('import', file)).toEqual([['/v1/imports?mode=upsert', ['file']]]);
  expect(await posted('import', file, '--kind', 'clients')).toEqual([
    ['/v1/imports?mode=upsert&kind=clients', ['clients']],
  ]);
});

test('--column sets the columns of an import', async () => {
  const [[at] = []] = await posted('import', file, ...columns);
  expect(at).toBe('/v1/imports?mode=upsert&columns=externalId:PAT_ID,clients.firstName:Vor=name');
});

test('import rejects a column with a comma, map accepts it', async () => {
  const comma = ['--column', 'lastName=Name, last'];
  await expect(posted('import', file, ...comma)).rejects.toThrow('"Name, last" has a comma in its name');
  expect(await posted('map', 'i1', ...comma)).toEqual([
    ['/v1/imports/i1/mapping', { columns: { lastName: 'Name, last' } }],
  ]);
});

test.each([['PAT_ID'], ['=PAT_ID'], ['externalId=']])('rejects --column %s', async (text) => {
  await expect(posted('map', 'i1', '--column', text)).rejects.toThrow('It must be FIELD=COLUMN');
});

test('map sends the columns, and requires one', async () => {
  expect(await posted('map', 'i/1', ...columns)).toMatchObject([
    ['/v1/imports/i/1/mapping', { columns: { externalId: 'PAT_ID', 'clients.firstName': 'Vor=name' } }],
  ]);
  await expect(posted('map', 'i1')).rejects.toThrow('--column');
  await expect(posted('map', 'i1', ...columns, '--column', 'externalId=MRN')).rejects.toThrow('has two columns');
});

test('apply confirms guards by name, and retry has none', async () => {
  expect(await posted('apply', 'i1', '--override', 'idColumn', 'looksDoubled')).toMatchObject([
    ['/v1/imports/i1/apply', { override: ['idColumn', 'looksDoubled'] }],
  ]);
  await expect(posted('apply', 'i1', '--override', 'creates')).rejects.toThrow('creates');
  await expect(posted('retry', 'i1', '--override', 'deletes')).rejects.toThrow('--override');
});
