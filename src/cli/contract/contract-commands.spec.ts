import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  API_KEY,
  contractOf,
  FULL_CONTRACT,
  json,
  LoopbackPlatform,
  testEnv,
} from '../../platform/clients/loopback-platform.spec-support.js';
import { OPERATION_NAMES, type OperationName } from '../../platform/contract/operations.js';
import { readAnswer, readingLines } from './answer-reading.js';
import { check } from './check.js';
import { probePlatform } from './probe.js';

const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-contract-'));
function fileOf(name: string, content: string | object): string {
  const file = path.join(folder, name);
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

/** Runs `contract check`. @returns its output and exit code */
async function checked(file: string, options: Parameters<typeof check>[1] = {}) {
  const printed: string[] = [];
  const log = jest.spyOn(console, 'log').mockImplementation((line: string) => printed.push(line));
  const before = process.exitCode;
  process.exitCode = 0;
  await check(file, options).finally(() => log.mockRestore());
  const code = process.exitCode;
  process.exitCode = before;
  return { code, printed: printed.join('\n') };
}

describe('contract check', () => {
  it('lists the capabilities that a file without faults turns on', async () => {
    const { code, printed } = await checked(fileOf('full.json', FULL_CONTRACT));
    expect(code).toBe(0);
    expect(printed).toMatch(/full\.json has no faults/);
    expect(printed).toContain('✓ user-mirroring');
    expect(printed).toContain('– recorder is off: set PLATFORM_PARTNER_DOMAIN');
  });

  it('names each fault with its line and column', async () => {
    const { code, printed } = await checked(fileOf('misspelt.json', '{\n  "operations": { "getSesion": {} }\n}'));
    expect([code, printed]).toEqual([
      2,
      expect.stringMatching(/^✗ line 2, column 19: operations\.getSesion: is not known here, known: .*getSession/),
    ]);
  });

  it('shows the types that the pointers find in a sample, never its values', async () => {
    const contract = fileOf('moved.json', {
      ...FULL_CONTRACT,
      operations: { createClient: { response: { userId: '/data/id' } } },
    });
    const sample = fileOf('answer.json', { data: { userId: 'ana@example.org' }, name: 'Ana' });
    const { code, printed } = await checked(contract, { sample, operation: 'createClient' });
    expect(code).toBe(2);
    expect(printed).toContain('✗ createClient: no id at /data/id, found nothing (/data is an object without it)');
    expect(printed).toContain('  userId "/data/id"  nothing (/data is an object without it)');
    expect(printed).not.toMatch(/ana/i);
    const good = fileOf('good.json', { data: { id: 'u-1' } });
    expect(await checked(contract, { sample: good, operation: 'createClient' })).toMatchObject({ code: 0 });
  });
});

test('reads a sample as the service reads an answer', async () => {
  const session = { sessionId: 's', state: 'Done', noteTemplateIds: [], clientUserIds: [], providerUserId: 'p' };
  const contract = contractOf(FULL_CONTRACT);
  const fault = async (operation: OperationName, body: unknown) => (await readAnswer(contract, operation, body)).fault;
  expect(await fault('getSession', session)).toBeUndefined();
  expect(await fault('getSession', { ...session, sessionId: 7 })).toBe('no Session at /sessionId, found a number');
  expect(await fault('getComplianceJob', { status: 'ok' })).toBeUndefined();
  expect(await fault('checkUser', { isUserExists: 'yes' })).toBe('no boolean at /isUserExists, found a text');
  expect(await fault('recordingUploadUrl', { put: 'x' })).toBe('no complete address at /put, found a text');
  const partly = await readAnswer(contract, 'getSession', { ...session, notes: 'x' });
  expect(readingLines(partly)).toContain('not completely readable: notes');
  for (const operation of OPERATION_NAMES)
    expect((await readAnswer(contract, operation, null)).operation).toBe(operation);
});

describe('contract probe', () => {
  let platform: LoopbackPlatform;
  const versioned = contractOf({
    ...FULL_CONTRACT,
    operations: { checkUser: { headers: { 'X-Partner': 'hidden-value' }, query: { v: 'hidden-value' } } },
  });
  const probed = () => probePlatform(testEnv(platform.url), versioned);

  beforeAll(async () => {
    platform = await LoopbackPlatform.start();
  });
  afterAll(() => platform.stop());

  it('shows request, types and what is read, without key, secrets and values', async () => {
    platform.answer = (_request, response) => json(response, 200, { isUserExists: true, userId: 'private-id' });
    const probe = await probed();
    expect(platform.heard.map(({ method, url, body }) => `${method} ${url} ${body}`)).toEqual([
      'POST /users/check?v=hidden-value {"email":"nobody@example.invalid"}',
    ]);
    expect(probe).toMatchObject({
      request: {
        method: 'POST',
        url: `${platform.url}/users/check?v=(not shown)`,
        body: { email: 'nobody@example.invalid' },
      },
      fault: undefined,
      shape: { isUserExists: 'a boolean', userId: 'a text' },
    });
    expect(JSON.stringify(probe)).not.toMatch(new RegExp(`${API_KEY}|hidden-value|private-id`));
  });

  it('says why the answer is unreadable', async () => {
    platform.answer = (_request, response) => json(response, 200, { exists: false });
    expect((await probed()).fault).toBe('no boolean at /isUserExists, found nothing (the top is an object without it)');
    platform.answer = (_request, response) => json(response, 403, {});
    expect((await probed()).fault).toMatch(/rejected the API key for checkUser \(403\)/);
  });
});
