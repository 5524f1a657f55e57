import { Command } from 'commander';
import type { Api } from '../api/api.js';
import { addServiceCommands } from './service.command.js';

const SINCE = '2026-11-27T08:00:00.000Z';
const HELD = { held: true, heldBySetting: false, since: SINCE, by: 'admin', reason: 'CASE-1' };

async function run(answer: object, ...args: string[]): Promise<{ sent: unknown[]; printed: string }> {
  const sent: unknown[] = [];
  const send = async (...request: unknown[]) => {
    sent.push(request);
    return Response.json(answer);
  };
  const log = jest.spyOn(console, 'log').mockImplementation();
  log.mockClear();
  const program = new Command().exitOverride();
  addServiceCommands(program, { send } as unknown as Api);
  for (const command of program.commands) command.exitOverride().configureOutput({ writeErr: () => {} });
  await program.parseAsync(args, { from: 'user' });
  return { sent, printed: log.mock.calls.flat().join('\n') };
}

describe('hold', () => {
  it('sends the reason, and prints the start and the holder of the hold', async () => {
    const { sent, printed } = await run(HELD, 'hold', '--reason', 'CASE-1');
    expect(sent).toEqual([['PUT', '/v1/sending', { held: true, reason: 'CASE-1' }]]);
    expect(printed).toBe(`Sending has been held since 2026-11-27 08:00:00 UTC by admin (CASE-1).`);
  });

  it('prints what the release needs', async () => {
    const { printed } = await run({ ...HELD, heldBySetting: true }, 'hold', '--reason', 'CASE-1');
    expect(printed.split('\n').slice(1)).toEqual([
      'HOLD_SENDING is true: remove the setting and restart before the release.',
    ]);
  });

  it('needs a reason', async () => {
    await expect(run(HELD, 'hold')).rejects.toThrow('--reason');
  });
});

test('release says that the database was restored', async () => {
  const { sent, printed } = await run({ ...HELD, held: false }, 'release', '--restored');
  expect(sent).toEqual([['PUT', '/v1/sending', { held: false, restored: true }]]);
  expect(printed).toBe('The hold has ended: pending changes go to the platform now.');
});
