import { Readable } from 'node:stream';
import { Command } from 'commander';
import type { FindResponse } from '../../search/search.dto.js';
import type { Api } from '../api/api.js';
import { addFindCommand } from './find.command.js';

const CLIENT: FindResponse['items'][number] = {
  ...{ kind: 'client', id: 'C-1', matched: 'email', state: 'synced' },
  updatedAt: new Date('2026-03-01T10:00:00Z'),
};

/** Runs the command. @returns its requests and its output */
async function find(answer: FindResponse, ...args: string[]) {
  const post = jest.fn<Promise<FindResponse>, [path: string, body: object]>(async () => answer);
  const log = jest.spyOn(console, 'log').mockImplementation();
  const program = new Command();
  addFindCommand(program, { post } as unknown as Api);
  await program.parseAsync(['find', ...args], { from: 'user' });
  const printed = log.mock.calls.join('\n');
  log.mockRestore();
  return { sent: post.mock.calls, printed };
}

describe('find', () => {
  it('prints each result with its kind, and names no person', async () => {
    const { sent, printed } = await find({ items: [CLIENT], more: true }, 'C-1');
    expect(sent).toEqual([['/v1/search', { text: 'C-1' }]]);
    expect(printed).toMatch(/client +C-1 +synced +email[\s\S]+There are more/);
  });

  it('reads the text from standard input', async () => {
    const input = Readable.from(['noor@example.org\n']) as typeof process.stdin;
    const stdin = jest.spyOn(process, 'stdin', 'get').mockReturnValue(input);
    expect((await find({ items: [], more: false }, '-')).sent).toEqual([['/v1/search', { text: 'noor@example.org' }]]);
    stdin.mockRestore();
  });

  it('says why nothing was found', async () => {
    expect((await find({ items: [], more: false }, 'Haddad')).printed).toContain('Names are encrypted');
  });
});
