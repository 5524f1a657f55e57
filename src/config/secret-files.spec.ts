import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { validateEnv } from './env.validation.js';

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
  FINGERPRINT_KEYS: `f1:${key}`,
  AUDIT_KEYS: `a1:${key}`,
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
    expect.stringMatching(/^ {2}DATABASE_URL must .*sslmode=verify-full/),
    '  DATA_KEYS_FILE must name a file that holds the value (EISDIR)',
    expect.stringMatching(/^ {2}PORT must/),
    '  REDIS_URL_FILE must name a file that holds the value (it is empty)',
  ]);
  expect(message).not.toMatch(/hunter2|administrator/);
});
