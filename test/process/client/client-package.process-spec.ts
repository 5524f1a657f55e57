import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Service } from '../../../harness/service.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from '../../support/app.js';
import { blocksOf, ROOT, readPage } from '../../support/pages.js';
import { useTestWorlds } from '../../support/service.js';

const newWorld = useTestWorlds();
const run = promisify(execFile);
let service: Service;
let folder: string;

/** Runs Node in a folder in which the package is installed. */
async function node(...args: string[]): Promise<string> {
  const env = { PATH: process.env.PATH, NOTEBRIDGE_URL: service.url, NOTEBRIDGE_KEY: ADMIN_KEY };
  return (await run(process.execPath, args, { cwd: folder, env })).stdout;
}

beforeAll(async () => {
  const world = await newWorld({ platform: { webhookSecret: WEBHOOK_SECRET, stepMs: 100 } });
  service = await world.start();
  world.simulator.state.settings.webhookUrl = `${service.url}/webhooks/platform`;
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-client-'));
  writeFileSync(path.join(folder, 'package.json'), '{ "private": true }');
  writeFileSync(path.join(folder, 'visit.wav'), 'sound');
  const packed = path.join(ROOT, `dist/notebridge-client-${version()}.tgz`);
  // Without a registry, because the package brings its dependency along.
  const npm = ['install', '--offline', '--no-audit', '--no-fund', '--cache', path.join(folder, 'cache'), packed];
  await run('npm', npm, { cwd: folder });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const version = (): string => JSON.parse(readFileSync(path.join(ROOT, 'client/package.json'), 'utf8')).version;

test.each(blocksOf(readPage('client/README.md'), 'js').map((block, at) => [at + 1, block]))(
  'block %i of client/README.md runs',
  async (at, block) => {
    writeFileSync(path.join(folder, `block-${at}.mjs`), String(block));
    await node(`block-${at}.mjs`);
  },
);

test('the blocks of docs/ehr.md are one program, which gets two versions of a note', async () => {
  writeFileSync(path.join(folder, 'day.mjs'), blocksOf(readPage('docs/ehr.md'), 'js').join('\n'));
  expect(await node('day.mjs')).toMatch(/^synced\n[\s\S]*Subjective[\s\S]*\n2\nsession.created\nstore 1-\d+\n/);
});

test('examples/ehr.mjs prints the notes that a push announced, and deletes its subscription', async () => {
  const printed = await node(path.join(folder, 'node_modules/notebridge-client/examples/ehr.mjs'));
  expect(printed).toMatch(/plan for the week/);
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const left = (await (await fetch(`${service.url}/v1/subscriptions`, { headers })).json()) as { items: unknown[] };
  expect(left.items).toEqual([]);
});

/** Calls of users. The compiler must reject exactly those with a comment. */
const USES = `import { createClient, NotebridgeError, verifyWebhook, type Schemas } from 'notebridge-client';
const client = createClient({ url: 'http://localhost', key: 'key', attempts: undefined, fetch: undefined });
type Person = Schemas['PersonResponse'];
export const failed = (error: unknown): number | undefined =>
  error instanceof NotebridgeError ? error.retryAfter : undefined;
export const subject = async (): Promise<string> => (await verifyWebhook({}, '', [])).data.subject;

export async function calls(text: string | undefined, signal: AbortSignal | undefined) {
  const path = { externalId: 'C-1' };
  const body = { firstName: 'Tomas', lastName: 'Lind', providers: ['P-901'] };

  const { data } = await client.GET('/v1/clients/{externalId}', { params: { path } });
  data satisfies Person;
  (await client.PUT('/v1/clients/{externalId}', { params: { path }, body })).data satisfies Person;
  (await client.GET('/v1/clients')).data.items satisfies Person[];
  (await client.GET('/v1/clients', { parseAs: 'text' })).data satisfies string;
  (await client.GET('/v1/clients', { parseAs: 'blob', signal })).data satisfies Blob;
  (await client.GET('/v1/clients', { parseAs: 'json' })).data.items satisfies unknown[];
  // @ts-expect-error: a text has no items.
  (await client.GET('/v1/clients', { parseAs: 'text' })).data.items;

  await client.GET('/v1/clients', { params: { query: { cursor: text } }, headers: { prefer: text }, signal });
  await client.GET('/v1/clients', { params: undefined, headers: undefined, parseAs: undefined, signal: null });

  // @ts-expect-error: the path does not exist.
  await client.GET('/v1/client');
  // @ts-expect-error: the path has no PUT.
  await client.PUT('/v1/clients', {});
  // @ts-expect-error: the path needs a parameter.
  await client.GET('/v1/clients/{externalId}');
  // @ts-expect-error: the parameter has another name.
  await client.GET('/v1/clients/{externalId}', { params: { path: { id: 'C-1' } } });
  // @ts-expect-error: the query has no such field.
  await client.GET('/v1/clients', { params: { query: { curser: '1' } } });
  // @ts-expect-error: a call has no such option.
  await client.GET('/v1/clients', { timeout: 5 });
  // @ts-expect-error: parseAs has no such value.
  await client.GET('/v1/clients', { parseAs: 'xml' });
  // @ts-expect-error: a client needs providers.
  await client.PUT('/v1/clients/{externalId}', { params: { path }, body: { firstName: 'Tomas', lastName: 'Lind' } });
  await client.PUT('/v1/clients/{externalId}', {
    params: { path },
    // @ts-expect-error: a client has no such field.
    body: { firstName: 'Tomas', lastName: 'Lind', providers: [], birthday: '1980-01-01' },
  });
  // @ts-expect-error: the optional field has another name.
  await client.POST('/v1/subscriptions', { body: { url: 'https://ehr.example', types: [], discription: 'x' } });
}
`;

test.each(['--strict', '--exactOptionalPropertyTypes'])(
  'the types of the package fit the calls of its users with %s',
  async (option) => {
    writeFileSync(path.join(folder, 'use.mts'), USES);
    const compiler = path.join(ROOT, 'node_modules/typescript/bin/tsc');
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', option];
    await node(compiler, ...options, '--lib', 'es2022,dom,dom.iterable', 'use.mts').catch(
      (error: { stdout?: string }) => {
        throw new Error(error.stdout);
      },
    );
  },
);

test('the package holds its code, its types and its examples, and no test', () => {
  const files = readdirSync(path.join(folder, 'node_modules/notebridge-client'), { recursive: true, encoding: 'utf8' });
  const own = files.filter((file) => !file.startsWith('node_modules'));
  expect(own).toEqual(expect.arrayContaining(['README.md', 'examples/ehr.mjs', 'lib/notebridge-client.d.ts']));
  expect(own.filter((file) => /spec|tsconfig/.test(file))).toEqual([]);
});
