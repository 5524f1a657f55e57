import { mkdtempSync, readFileSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import type { Api } from '../api/api.js';
import { addPeopleCommands, waitSeconds } from './people.command.js';

test.each([
  ['0', 0],
  ['20', 20],
  ['60', 60],
])('accepts %s seconds', (text, seconds) => {
  expect(waitSeconds(text)).toBe(seconds);
});

test.each(['abc', '', '-1', '61', '1.5', '1e1', ' 5', 'Infinity'])(
  'rejects %j, and names the allowed range',
  (text) => {
    expect(() => waitSeconds(text)).toThrow('It must be a whole number of seconds, 0 to 60.');
  },
);

describe('people --csv', () => {
  const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'notebridge-people-')), 'people.csv');
  const asked: string[] = [];

  async function people(body: string | ReadableStream, ...args: string[]): Promise<void> {
    const send = async (_method: string, asking: string) => {
      asked.push(asking);
      return new Response(body);
    };
    jest.spyOn(console, 'log').mockImplementation();
    jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    const program = new Command().exitOverride();
    addPeopleCommands(program, { send } as unknown as Api);
    for (const command of program.commands) command.exitOverride();
    await program.parseAsync(['people', ...args], { from: 'user' });
  }

  test('prints the file', async () => {
    const write = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    await people('kind\r\n', '--csv');
    expect(write.mock.calls.map(([chunk]) => Buffer.from(chunk).toString())).toContain('kind\r\n');
    write.mockRestore();
  });

  test('leaves no incomplete file', async () => {
    const broken = new ReadableStream({
      pull: (controller) => controller.error(new Error('connection lost')),
    });
    await expect(people(broken, '--output', file)).rejects.toThrow('the output is incomplete');
    expect(() => statSync(file)).toThrow('ENOENT');
  });

  test('writes a new file that only its owner can read', async () => {
    await people('kind\r\n', '--output', file);
    expect([asked.at(-1), statSync(file).mode & 0o777, readFileSync(file, 'utf8')]).toEqual([
      '/v1/people.csv',
      0o600,
      'kind\r\n',
    ]);
    await expect(people('other', '--output', file)).rejects.toThrow('already exists');
    expect(readFileSync(file, 'utf8')).toBe('kind\r\n');
  });

  test.each(['--kind=client', '--state=failed', '--external-id=C-1', '--limit=5', '--json'])(
    'excludes %s, because the file contains all people',
    async (option) => {
      await expect(people('', '--csv', option)).rejects.toThrow('cannot be used with');
    },
  );
});
