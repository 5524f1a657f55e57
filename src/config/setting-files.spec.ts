import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { validateEnv } from './env.js';

const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-secrets-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string): string {
  const at = path.join(folder, name);
  writeFileSync(at, content);
  return at;
}

const key = Buffer.alloc(32, 7).toString('base64');
const secrets = {
  PLATFORM_API_KEY: 'platform-key',
  PLATFORM_WEBHOOK_SECRET: 'first-webhook-secret-of-notebridge, second-webhook-secret-of-notebridge',
  ADMIN_API_KEY: 'first-administrator-key-of-notebridge',
  DATA_KEYS: `k2:${key},k1:${key}`,
  DATABASE_URL: 'postgresql://u:p@localhost/notebridge',
  DATABASE_OWNER_URL: 'postgresql://o:p@localhost/notebridge',
  REDIS_URL: 'redis://:p@localhost:6379',
};
const base = { PLATFORM_BASE_URL: 'https://platform.example' };
const files = Object.fromEntries(
  Object.entries(secrets).map(([name, value]) => [`${name}_FILE`, file(name, `${value}\n`)]),
);

test('every setting may come from a file, with a line break at its end', () => {
  expect(validateEnv({ ...base, ...files })).toMatchObject(validateEnv({ ...base, ...secrets }));
  expect(validateEnv({ ...base, ...files }).ADMIN_API_KEY).toBe('first-administrator-key-of-notebridge');
  expect(validateEnv({ ...base, ...secrets, PORT_FILE: file('port', '3001\n') }).PORT).toBe(3_001);
});

test('a blank variable is unset, so its file counts', () => {
  expect(validateEnv({ ...base, ...files, ADMIN_API_KEY: ' ' }).ADMIN_API_KEY).toBe(
    'first-administrator-key-of-notebridge',
  );
});

test('lists every file that cannot be read with the other faults, and no content of a file', () => {
  const faulty = {
    ...base,
    ...files,
    ADMIN_API_KEY: 'second-administrator-key-of-notebridge',
    PLATFORM_API_KEY_FILE: path.join(folder, 'none'),
    DATA_KEYS_FILE: folder,
    REDIS_URL_FILE: file('blank', ' \n'),
    PLATFORM_WEBHOOK_SECRET_FILE: file('long', 'x'.repeat(70_000)),
    DATABASE_URL_FILE: file('plain', 'postgresql://u:hunter2@db.example/notebridge'),
    PORT: 'eighty',
  };
  let message = '';
  try {
    validateEnv(faulty);
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message.split('\n').slice(1)).toEqual([
    '  PLATFORM_API_KEY_FILE must name a file that holds the value (ENOENT)',
    '  PLATFORM_WEBHOOK_SECRET_FILE must name a file that holds the value (it is too long)',
    '  ADMIN_API_KEY_FILE must be the only source of ADMIN_API_KEY',
    expect.stringMatching(/^ {2}PORT must/),
    expect.stringMatching(/^ {2}DATABASE_URL must .*sslmode=verify-full/),
    '  REDIS_URL_FILE must name a file that holds the value (it is empty)',
    '  DATA_KEYS_FILE must name a file that holds the value (EISDIR)',
  ]);
  expect(message).not.toMatch(/hunter2|administrator/);
});

describe('a command for keys', () => {
  const { DATA_KEYS: _, ...others } = secrets;
  const read = (command: string) => validateEnv({ ...base, ...others, DATA_KEYS_COMMAND: command });

  test('prints the keys', () => {
    expect(read(`printf 'k2:%s\\n' '${key}' | cat`).DATA_KEYS).toEqual([`k2:${key}`]);
    const commands = { FINGERPRINT_KEYS_COMMAND: `echo f1:${key}`, AUDIT_KEYS_COMMAND: `echo a1:${key}` };
    expect(validateEnv({ ...base, ...secrets, ...commands })).toMatchObject({
      FINGERPRINT_KEYS: [`f1:${key}`],
      AUDIT_KEYS: [`a1:${key}`],
    });
  });

  test.each([
    ['fails', `echo k1:${key}; echo hunter2 >&2; exit 3`, 'must name a command that prints the keys (it ended with 3)'],
    ['does not exist', 'none-of-that-name', 'must name a command that prints the keys (it ended with 127)'],
    ['prints nothing', 'true', 'must name a command that prints the keys (it is empty)'],
    ['prints too much', 'yes', 'must name a command that prints the keys (its output is too long)'],
  ])('that %s is rejected, without its output', (_, command, fault) => {
    expect(() => read(command)).toThrow(new RegExp(`\\n  DATA_KEYS_COMMAND ${fault.replace(/[()]/g, '\\$&')}$`));
  });

  test('loses its error output, because it may contain a secret', () => {
    expect(read(`test /dev/fd/2 -ef /dev/null && echo k1:${key}`).DATA_KEYS).toEqual([`k1:${key}`]);
  });

  test('may not be next to another source', () => {
    const both = { ...base, ...others, DATA_KEYS_FILE: files.DATA_KEYS_FILE, DATA_KEYS_COMMAND: `echo k3:${key}` };
    expect(() => validateEnv(both)).toThrow('DATA_KEYS_COMMAND must be the only source of DATA_KEYS');
  });

  test('is not a source of other settings', () => {
    const { ADMIN_API_KEY, ...rest } = secrets;
    expect(() => validateEnv({ ...base, ...rest, ADMIN_API_KEY_COMMAND: `echo ${ADMIN_API_KEY}` })).toThrow(
      'ADMIN_API_KEY',
    );
  });
});
