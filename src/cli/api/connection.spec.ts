import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { connectionFrom, DEMO_NOTE } from './connection.js';

const DEMO = { url: 'http://127.0.0.1:4567', key: 'demo-key', environment: {} };
let dataDir: string;

beforeAll(() => {
  dataDir = mkdtempSync(path.join(os.tmpdir(), 'notebridge-cli-'));
  writeFileSync(path.join(dataDir, DEMO_NOTE), JSON.stringify(DEMO));
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const env = (more: { url?: string; key?: string; dataDir?: string }) => ({
  url: undefined,
  key: undefined,
  keyFault: undefined,
  dataDir,
  hasService: false,
  ...more,
});

test('what the environment says counts', () => {
  expect(connectionFrom(env({ url: 'http://h:1/', key: 'k' }))).toEqual({ url: 'http://h:1', key: 'k' });
});

test('a key without an address means the service on this machine, not the demo', () => {
  expect(connectionFrom(env({ key: 'k' }))).toEqual({ url: 'http://127.0.0.1:3000', key: 'k' });
});

test("with nothing said it is this clone's demo", () => {
  expect(connectionFrom(env({}))).toEqual({ url: DEMO.url, key: DEMO.key });
});

test("the demo's key goes nowhere but to the demo", () => {
  expect(() => connectionFrom(env({ url: 'http://elsewhere.example' }))).toThrow('NOTEBRIDGE_KEY');
});

test('without any key the fault says what to set', () => {
  expect(() => connectionFrom(env({ dataDir: '/nowhere' }))).toThrow('NOTEBRIDGE_KEY');
});
