import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Random } from '../config/random.js';
import { keptKeys, parseKeys } from './keys.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'data-keys-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('the first start makes a key, later ones find it', async () => {
  const made = await keptKeys(folder, 'DATA_KEYS', new Random());
  expect(made).toHaveLength(1);
  expect(made[0]).toMatch(/^k1:[A-Za-z0-9+/]{43}=$/);
  expect(await keptKeys(folder, 'DATA_KEYS', new Random())).toEqual(made);
});

test('the folder is made if it is missing', async () => {
  const [made] = await keptKeys(path.join(folder, 'new', '.data'), 'DATA_KEYS', new Random());
  expect(made).toMatch(/^k1:/);
});

test('first starts at the same time agree on one key', async () => {
  const starts = Array.from({ length: 20 }, () => keptKeys(folder, 'DATA_KEYS', new Random()));
  const pairs = (await Promise.all(starts)).map(([pair]) => pair);
  expect(new Set(pairs).size).toBe(1);
});

test('only the owner can read the key, and no draft is left', async () => {
  await keptKeys(folder, 'DATA_KEYS', new Random());
  expect((await stat(path.join(folder, 'data-keys'))).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(['data-keys']);
});

test('a pair is a name and the bytes of its key; base64 may hold slashes and plusses', () => {
  const key = Buffer.alloc(32, 0xfb);
  expect(parseKeys([`2026-a:${key.toString('base64')}`])).toEqual([{ id: '2026-a', key }]);
});
