import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { status } from '../../harness/push-receiver.js';
import { ADMIN_KEY } from '../../harness/world/settings.js';
import { Api } from '../../src/cli/api/api.js';
import { addSubscriptionCommands } from '../../src/cli/commands/subscriptions.command.js';
import type { SubscriptionResponse } from '../../src/subscriptions/subscriptions.dto.js';
import { useWorld } from '../world/use-world.js';
import { usePushes } from './pushed.js';

const world = useWorld();
const pushes = usePushes(world);

/** Runs `notebridge subscriptions …`. @returns what it printed */
async function subscriptions(...words: string[]): Promise<string> {
  const printed: string[] = [];
  const print = jest.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0);
  const program = new Command();
  addSubscriptionCommands(program, new Api(() => ({ url: world.url, key: ADMIN_KEY })));
  for (const group of program.commands) group.exitOverride().configureOutput({ writeErr: () => {} });
  try {
    await program.parseAsync(['subscriptions', ...words], { from: 'user' });
  } finally {
    print.mockRestore();
  }
  return printed.join('').trimEnd();
}

afterEach(() => {
  process.exitCode = undefined;
});

test('a subscription can be created, changed, skipped over, paused, resumed and deleted', async () => {
  const created = await subscriptions('create', 'http://127.0.0.1:1/hook', '--types', 'person.synced,person.deleted');
  expect(created).toMatch(/^[\da-f-]{36}\nwhsec_\S+$/);
  const [id = '', secret] = created.split('\n');
  await pushes.append(2);
  await world.settle();
  expect(await subscriptions()).toMatch(/127\.0\.0\.1:1\/hook .*Retrying.*person\.synced 1-1.*refuses the connection/s);

  expect(await subscriptions('skip', id, '1-1')).toBe('Event 1-1 was skipped.');
  await expect(subscriptions('skip', id, '1-1')).rejects.toThrow('The event after its cursor is 1-2.');
  expect(await subscriptions('set', id, '--url', pushes.receiver.url, '--types', 'all')).toBe('Changed.');
  await world.settle();
  expect(pushes.receiver.taken).toEqual(['1-2']);
  expect(await pushes.read(id)).toMatchObject({ types: null });

  expect(await subscriptions('pause', id)).toBe('Paused.');
  await pushes.append(1);
  await world.settle();
  expect(await subscriptions('resume', id)).toBe('Resumed.');
  await world.settle();
  expect(pushes.receiver.taken).toEqual(['1-2', '1-3']);
  const replaced = await subscriptions('rotate-secret', id);
  expect(replaced).toMatch(/^whsec_/);
  expect(replaced).not.toBe(secret);
  expect(await subscriptions('delete', id, '--yes')).toBe('Deleted.');
  expect(await subscriptions('list')).toContain('There are no subscriptions');
});

test('a test event says how the endpoint answered, and exits 2 if it did not accept it', async () => {
  const { id } = await pushes.subscribe();
  expect(await subscriptions('test', id)).toBe('Accepted (204)');
  expect(process.exitCode).toBeUndefined();
  pushes.receiver.respond = status(500);
  expect(await subscriptions('test', id)).toBe('Failed: it answered with an error (500)');
  expect(process.exitCode).toBe(2);
});

test('headers can be given as to curl, also in a file, and be removed', async () => {
  const created = await subscriptions('create', pushes.receiver.url, '-H', 'X-Key: a b', '--header', 'x-tenant:north');
  const [id = ''] = created.split('\n');
  const sent = async () => {
    await subscriptions('test', id);
    const { 'x-key': key, 'x-tenant': tenant } = pushes.receiver.attempts.at(-1)?.headers ?? {};
    return [key, tenant];
  };
  expect(await sent()).toEqual(['a b', 'north']);
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'headers-')), 'headers.txt');
  writeFileSync(file, 'x-tenant: south\n\n');
  expect(await subscriptions('set', id, '--header', `@${file}`)).toBe('Changed.');
  expect(await sent()).toEqual([undefined, 'south']);
  expect(await subscriptions('set', id, '--types', 'all')).toBe('Changed.');
  expect(await sent()).toEqual([undefined, 'south']);
  expect(await subscriptions('set', id, '--no-headers')).toBe('Changed.');
  expect(await sent()).toEqual([undefined, undefined]);
});

test.each([['s3cret'], [': s3cret'], ['x-key:'], ['x-key: s3cret', '-H', 'x-key: s3cret']])(
  'a faulty header is refused without its text: %s',
  async (...given) => {
    const setting = subscriptions('set', 'an-id', '-H', ...given);
    await expect(setting).rejects.toThrow(/a name, a colon and a value|x-key is given twice/);
    await expect(setting).rejects.not.toThrow('s3cret');
  },
);

test('the last attempts are listed', async () => {
  const { id } = await pushes.subscribe();
  expect(await subscriptions('attempts', id)).toBe('No event was pushed yet.');
  await pushes.append(1);
  pushes.receiver.respond = status(500);
  await world.settle();
  expect(await subscriptions('attempts', id)).toMatch(
    /person\.synced 1-1 +Failed: it answered with an error \(500\) +\d+/,
  );
});

test('resuming asks where to continue if events are gone', async () => {
  const { id } = await pushes.subscribe();
  await world.sql('INSERT INTO feed_state (epoch) VALUES (7)');
  await expect(subscriptions('resume', id)).rejects.toThrow('Events after its cursor are gone.');
  expect(await subscriptions('resume', id, '--after', 'latest')).toBe('Resumed.');
});

test('a mistyped command is named', async () => {
  await expect(subscriptions('resum', 'an-id')).rejects.toThrow("unknown command 'resum'");
});

test('a list says which type is unknown', async () => {
  const creating = subscriptions('create', pushes.receiver.url, '--types', 'session.unheard-of,person.synced');
  await expect(creating).rejects.toThrow('"session.unheard-of" is not one');
  expect((await world.call<{ items: SubscriptionResponse[] }>('GET', '/v1/subscriptions')).body.items).toEqual([]);
});
