import { mkdtempSync, readFileSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import type { Api } from '../api/api.js';
import { addClientCommands } from './client.command.js';

test('writes an export to a new file that only its owner can read', async () => {
  const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'notebridge-client-')), 'export.json');
  const asked: string[] = [];
  const send = async (_method: string, asking: string) => {
    asked.push(asking);
    return new Response(`{"export":${asked.length}}`);
  };
  jest.spyOn(console, 'log').mockImplementation();
  const program = new Command();
  addClientCommands(program, { send } as unknown as Api);
  const run = () => program.parseAsync(['client', 'export', 'c/1', '--output', file], { from: 'user' });
  await run();
  expect([asked, statSync(file).mode & 0o777]).toEqual([['/v1/clients/c%2F1/export'], 0o600]);
  await expect(run()).rejects.toThrow(file);
  expect(readFileSync(file, 'utf8')).toBe('{"export":1}');
});
