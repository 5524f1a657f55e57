import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readClientEnv } from './client-env.js';
import { connectionFrom, DEMO_NOTE } from './connection.js';

const DEMO = { url: 'http://127.0.0.1:4567', key: 'demo-key', environment: {} };
let dataDir: string;

beforeAll(() => {
  dataDir = mkdtempSync(path.join(os.tmpdir(), 'notebridge-cli-'));
  writeFileSync(path.join(dataDir, DEMO_NOTE), JSON.stringify(DEMO));
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const env = (more: { url?: string; key?: string; dataDir?: string; mayBeInsecure?: boolean }) => ({
  ...readClientEnv({ DATA_DIR: dataDir }),
  ...more,
});

test('uses the URL and key of the environment', () => {
  expect(connectionFrom(env({ url: 'https://h:1/', key: 'k' }))).toEqual({ url: 'https://h:1', key: 'k' });
});

test('a key without a URL: connects to the service on this machine, not the demo', () => {
  expect(connectionFrom(env({ key: 'k' }))).toEqual({ url: 'http://127.0.0.1:3000', key: 'k' });
});

test("connects to this clone's demo if nothing is set", () => {
  expect(connectionFrom(env({}))).toEqual({ url: DEMO.url, key: DEMO.key });
});

test.each(['http://h:1', 'http://127.0.0.1.example', 'http://127.0.0.1@h', 'http://10.0.0.1', 'http://[2001:db8::1]'])(
  'sends the key to %s unencrypted only with NOTEBRIDGE_INSECURE_HTTP=true',
  (url) => {
    expect(() => connectionFrom(env({ url, key: 'k' }))).toThrow(/^NOTEBRIDGE_URL .* NOTEBRIDGE_INSECURE_HTTP=true/);
    expect(connectionFrom(env({ url, key: 'k', mayBeInsecure: true }))).toEqual({ url, key: 'k' });
  },
);

test.each(['http://127.0.0.1:3000', 'http://127.8.0.1', 'http://localhost:3000', 'http://[::1]:3000', 'https://h'])(
  'sends the key to %s without further settings',
  (url) => expect(connectionFrom(env({ url, key: 'k' })).url).toBe(url),
);

test("sends the demo's key only to the demo", () => {
  expect(() => connectionFrom(env({ url: 'http://elsewhere.example' }))).toThrow('NOTEBRIDGE_KEY');
});

test('without a key: names the setting', () => {
  expect(() => connectionFrom(env({ dataDir: '/nowhere' }))).toThrow('NOTEBRIDGE_KEY');
});

test.each(['with\nbreak', 'schlüssel', 'a b'])('does not print a key with invalid characters (%j)', (key) => {
  expect(() => connectionFrom(env({ key }))).toThrow(/^The key contains invalid characters\. Set NOTEBRIDGE_KEY/);
});

test.each(['nonsense', 'ftp://h', 'localhost:3000', 'http://', 'http://a b'])('rejects the URL %s', (url) => {
  expect(() => connectionFrom(env({ url, key: 'k' }))).toThrow('NOTEBRIDGE_URL must be a URL such as http://');
});
