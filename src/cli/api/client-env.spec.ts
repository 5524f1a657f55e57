import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readClientEnv } from './client-env.js';

const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-keys-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string): string {
  const at = path.join(folder, name);
  writeFileSync(at, content);
  return at;
}

describe('the key of the command line', () => {
  const ADMIN_API_KEY_FILE = file('administrator', 'first-administrator-key-of-notebridge\n');
  const none = path.join(folder, 'none');

  test('can come from a file', () => {
    expect(readClientEnv({ ADMIN_API_KEY_FILE }).key).toBe('first-administrator-key-of-notebridge');
  });

  test('is NOTEBRIDGE_KEY, even if the file of ADMIN_API_KEY is missing', () => {
    const own = { NOTEBRIDGE_KEY_FILE: file('own', 'nb_own\r\n'), ADMIN_API_KEY_FILE: none };
    expect(readClientEnv(own)).toMatchObject({ key: 'nb_own', keyFault: undefined });
  });

  test('is missing, with a reason, if its file cannot be read', () => {
    expect(readClientEnv({ NOTEBRIDGE_KEY_FILE: none }).keyFault).toBe(
      'NOTEBRIDGE_KEY_FILE must name a file that holds the value (ENOENT).',
    );
  });
});
