import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import type { SimulatedSession } from '../../simulator/sessions/session.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { beginRegeneration, takeStep } from '../../simulator/sessions/session-run.js';
import type { AuditResponse } from '../../src/audit/audit.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { UploadAddressResponse } from '../../src/platform/clients/upload-address.dto.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from '../support/app.js';
import { usePrograms } from '../support/programs.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';

type Ended = [code: number | null, output: string];

const CLI = 'dist/src/cli/main.js';
const SOAP = '11111111-1111-4111-8111-111111111111';

const newWorld = useTestWorlds();
const startProgram = usePrograms();
let world: TestWorld;
let service: Service;
let folder: string;
let imported: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-cli-'));
  world = await newWorld({
    platform: { stepMs: 0, processingEvents: false, webhookSecret: WEBHOOK_SECRET, webhookTimeoutMs: 60_000 },
    env: {
      PLATFORM_TIMEOUT_SECONDS: '60',
      IMPORT_MAX_DELETES: '1%,0',
      // Sessions are fetched only when a command asks for it.
      SESSION_REFRESH_AFTER_SECONDS: '3600',
      SESSION_REFRESH_EVERY_SECONDS: '3600',
    },
  });
  service = await world.start();
  world.simulator.state.settings.webhookUrl = `${service.url}/webhooks/platform`;
});
afterAll(() => rmSync(folder, { recursive: true }));

const connection = (): Record<string, string> => ({
  NOTEBRIDGE_URL: service.url,
  NOTEBRIDGE_KEY: ADMIN_KEY,
  DATA_DIR: folder,
});
const start = (args: string[], env: Record<string, string> = {}) =>
  startProgram({ file: CLI, args, env: { ...connection(), ...env } });

async function runWith(env: Record<string, string>, ...args: string[]): Promise<Ended> {
  const program = await start(args, env);
  return [await program.ended(), program.output().replace(/^notebridge at \S+\n/, '')];
}
const run = (...args: string[]) => runWith({}, ...args);

function file(name: string, ...lines: string[]): string {
  const place = path.join(folder, name);
  writeFileSync(place, `${lines.join('\n')}\n`);
  return place;
}

const HEADER = 'externalId,email,firstName,lastName';
const provider = (id: string) => `${id},${id}@example.org,Ada,Osei`;
const PROVIDERS = [HEADER, provider('p1'), provider('p2')];
const CLIENTS = [`${HEADER},providers`, 'c1,c1@example.com,Cy,Ng,p1|p2', 'c2,,Di,Ru,p2'];
const idIn = (output: string) => /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(output)?.[0] ?? '';

describe('import', () => {
  it('accepts several files, watches to the end and exits 0', async () => {
    const [code, output] = await run('import', file('providers.csv', ...PROVIDERS), file('clients.csv', ...CLIENTS));
    expect(output).toMatch(/completed in .*: 4 rows, \d+ calls to the platform/);
    expect(output).toMatch(/4 {2}created\n/);
    imported = idIn(output);
    expect(code).toBe(0);
  });

  it('exits 2 for rejected rows, which can be fetched, corrected and imported again', async () => {
    const first = await run('import', file('clients.csv', CLIENTS[0] ?? '', 'c3,c3@example.com,Ed,Wu,missing'));
    expect(first).toEqual([2, expect.stringContaining('1  rejected')]);
    const id = idIn(first[1]);
    const [, rows] = await run('import-rows', id, '--outcome', 'rejected');
    expect(rows).toMatch(/clients\.csv:2 +c3 +Rejected +unknown-provider/);
    const rejected = path.join(folder, 'rejected-clients.csv');
    expect((await run('import-rows', id, '--rejected-csv', rejected))[0]).toBe(0);
    const twice = await run('import-rows', id, '--rejected-csv', rejected);
    expect(twice).toEqual([1, expect.stringContaining('already exists')]);
    const corrected = readFileSync(rejected, 'utf8').replace('missing', 'p1').replace('unknown-provider', '');
    writeFileSync(rejected, corrected);
    expect(await run('import', rejected)).toEqual([0, expect.stringContaining('1  created')]);
  });

  it('prints one JSON object with --json, and nothing else', async () => {
    const [code, output] = await run('import', file('providers.csv', ...PROVIDERS), '--json');
    expect([code, JSON.parse(output)]).toMatchObject([0, { state: 'completed', counts: { total: 2 } }]);
  });

  it('exits 2 and names the guard that stops the plan', async () => {
    const held = await run('import', file('clients.csv', ...CLIENTS.slice(0, 2)), '--mode', 'snapshot');
    expect(held).toEqual([2, expect.stringContaining('Needs confirmation (deletes): 2 of 3')]);
    expect(held[1]).toContain('--override deletes');
  });

  it('sends nothing after a dry run until the plan is applied', async () => {
    const before = world.arrivals();
    const [, planned] = await run('import', file('providers.csv', HEADER, provider('p9')), '--dry-run');
    expect(planned).toContain('Nothing was sent');
    expect(world.arrivals()).toBe(before);
    const id = /apply ([0-9a-f-]{36})/.exec(planned)?.[1] ?? '';
    expect(await run('apply', id)).toEqual([0, expect.stringContaining('1  created')]);
  });

  it('exits 130 on Ctrl-C and leaves the import running', async () => {
    world.hold({ operation: 'checkUser' });
    const program = await start(['import', file('providers.csv', HEADER, provider('p8'))]);
    const [, id = ''] = await program.printed(/Import ([0-9a-f-]{36})/);
    expect(await program.kill('SIGINT')).toBe(130);
    expect(program.output()).toContain(`npx notebridge imports ${id}`);
    world.release();
    expect((await service.importEnded(id)).counts.created).toBe(1);
  });

  it('does not lose a Ctrl-C that arrives just before the watch begins', () => {
    const script = `
      const { onInterrupt } = require('./dist/src/cli/import/import-watch.js');
      onInterrupt('sending');
      process.kill(process.pid, 'SIGINT');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200); // until the signal has arrived
      onInterrupt('watching');
      setTimeout(() => {}, 2_000);`;
    const { status, stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
    expect([status, stdout]).toEqual([130, 'watching\n']);
  });

  it('exits 1 if the service cannot detect the kind of a file', async () => {
    const asked = await run('import', file('export.csv', ...PROVIDERS));
    expect(asked).toEqual([1, expect.stringContaining('kind')]);
  });
});

describe('refresh', () => {
  const fetches = () => world.arrivals('getSession');

  async function knownSession(): Promise<SimulatedSession> {
    const { state } = world.simulator;
    const session = createSession(state, {
      providerUserId: world.usersOf('p1')[0]?.userId ?? '',
      clientUserIds: [world.usersOf('c1')[0]?.userId ?? ''],
      noteTemplateIds: [SOAP],
      input: { kind: 'text', text: 'They discussed the week.' },
      date: '2026-03-01T09:00:00.000Z',
    });
    while (session.nextStep) takeStep(state, session);
    await generationBecomes(session, '1');
    await until('every event is fetched', async () => {
      const open = await world.sql('SELECT FROM webhook_deliveries WHERE due_at IS NOT NULL');
      const { body } = await service.call<{ pending: number }>('GET', '/v1/sessions/refreshes');
      return open.length === 0 && body.pending === 0;
    });
    return session;
  }

  /** Has the platform rewrite the notes without an event. */
  function regenerateSilently(session: SimulatedSession): void {
    const { state } = world.simulator;
    state.settings = { ...state.settings, webhookDropRate: 1 };
    beginRegeneration(state, session, [SOAP]);
    takeStep(state, session);
    state.settings = { ...state.settings, webhookDropRate: 0 };
  }

  async function generationOf({ sessionId }: SimulatedSession): Promise<string | undefined> {
    const { body } = await service.call<object>('GET', `/v1/sessions/${sessionId}/notes`);
    return /\(Generation (\d+)\.\)/.exec(JSON.stringify(body))?.[1];
  }
  const generationBecomes = (session: SimulatedSession, wanted: string) =>
    until(`generation ${wanted} is there`, async () => (await generationOf(session)) === wanted);

  let one: SimulatedSession;
  let other: SimulatedSession;
  beforeAll(async () => {
    one = await knownSession();
    other = await knownSession();
    for (const session of [one, other]) regenerateSilently(session);
  });

  it('--session reports only that session, even if others wait or fail', async () => {
    const want = `UPDATE sessions SET changes = fetched_changes + 1, due_at = now() + interval '1 hour',
      fault = 'unreachable', failures = 1 WHERE session_id = $1`;
    await world.sql(want, [other.sessionId]);
    const before = fetches();
    expect(await run('refresh', '--session', one.sessionId)).toEqual([
      0,
      expect.stringMatching(/^1 session to fetch\n[\s\S]*^All sessions were fetched\.$/m),
    ]);
    expect([await generationOf(one), await generationOf(other), fetches() - before]).toEqual(['2', '1', 1]);
    await world.sql('UPDATE sessions SET due_at = NULL WHERE session_id = $1', [other.sessionId]);
  });

  it('--since fetches every session and shows the progress', async () => {
    world.injectFault({ operation: 'getSession', kind: 'slow', ms: 3_600_000, count: null });
    const program = await start(['refresh', '--since', '2026-01-31']);
    await program.printed(/^0 of 2 sessions/m);
    world.release();
    expect([await program.ended(), program.output()]).toEqual([0, expect.stringContaining('2 sessions to fetch')]);
    expect(await generationOf(other)).toBe('2');
    expect(await run('refresh', '--since', '2999-01-01')).toEqual([0, '0 sessions to fetch\n']);
  });

  it('exits 2 if a fetch fails, and 1 if no session is named', async () => {
    world.injectFault({ operation: 'getSession', kind: 'status', status: 500, count: null });
    const failed = await run('refresh', '--session', one.sessionId);
    world.release();
    expect(failed).toEqual([2, expect.stringContaining('1 session could not be fetched')]);
    expect(await run('refresh')).toEqual([1, expect.stringContaining('--since or --session')]);
    expect((await run('refresh', '--session', 'unknown'))[0]).toBe(1);
  });
});

describe('the output', () => {
  it.each([
    [['people', '--json'], 0],
    [['doctor'], 1],
  ])('%j exits without an error if the reader closes the pipe', async (words, exitCode) => {
    const child = spawn(process.execPath, [CLI, ...words], { env: { ...process.env, ...connection() } });
    child.stdout.destroy();
    let errors = '';
    child.stderr.on('data', (text) => {
      errors += text;
    });
    const [code] = await once(child, 'close');
    expect([code, errors]).toEqual([exitCode, '']);
  });

  it.each(['people', 'doctor'])('%s exits 1 with one sentence if the disk is full', (command) => {
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [CLI, command], {
      ...{ env: { ...process.env, ...connection() }, stdio: ['ignore', full, 'pipe'], encoding: 'utf8' },
    });
    closeSync(full);
    const sentence = 'The output cannot be written (ENOSPC), so it is incomplete.\n';
    expect([status, stderr.replace(/^notebridge at .*\n/, '')]).toEqual([1, sentence]);
  });

  it('contains no names in people, trace and resolve', async () => {
    const outputs = [
      await run('people', '--kind', 'client'),
      await run('trace', 'client', 'c1'),
      await run('resolve', 'client', 'c1', 'retry'),
    ].map(([, output]) => output);
    for (const output of outputs) {
      expect(output).toContain('c1');
      expect(output).not.toMatch(/Cy|Ng|@example/);
    }
    expect(outputs[1]).toContain('createClient');
  });

  it('prints the URL of the service', async () => {
    const program = await start(['people', '--limit', '1']);
    await program.ended();
    expect(program.output()).toMatch(`notebridge at ${service.url}\n`);
  });

  it('shows the steps of a session and its deliveries', async () => {
    const [session] = (await service.call<Page<SessionResponse>>('GET', '/v1/sessions?limit=1')).body.items;
    const [code, output] = await run('trace', 'session', session?.sessionId ?? '');
    expect(code).toBe(0);
    expect(output).toMatch(new RegExp(`^session ${session?.id}: done \\(from the platform's answer\\)$`, 'm'));
    expect(output).toMatch(/^next {6}none: everything announced was fetched$/m);
    const [, id = ''] = /SESSION_PROCESSING_COMPLETED +(\d+) +Processed/.exec(output) ?? [];
    const delivery = await run('trace', 'delivery', id);
    expect(delivery).toEqual([0, expect.stringMatching(/^delivery \d+: processed$/m)]);
    expect(delivery[1]).toContain(`SESSION_PROCESSING_COMPLETED, about ${session?.sessionId} on the platform`);
  });

  it('limits a list, with a note, and prints all of it as JSON', async () => {
    const [code, limited] = await run('people', '--limit', '1');
    expect([code, limited]).toEqual([
      0,
      expect.stringMatching(/^Only the first 1 are shown\. To show all: --limit all/m),
    ]);
    expect(limited).toMatch(/^provider +p1 /m);
    expect(limited).not.toMatch(/^provider +p2 /m);
    const lines = async (...more: string[]) => (await run('people', '--json', ...more))[1].trim().split('\n');
    expect(await lines('--limit', '1')).toHaveLength(1);
    const all = (await lines()).map((line) => JSON.parse(line).externalId);
    expect(all).toEqual(expect.arrayContaining(['p1', 'p2', 'c1', 'c2']));
    expect(await run('sessions', '--since', '2999-01-31')).toEqual([0, 'No matching sessions.\n']);
  });

  it.each([
    [['status', '--json', '--none'], "unknown option '--none'"],
    [['audit', 'verify', '--json'], 'Those of the service at NOTEBRIDGE_URL'],
    [['doctor', '--json', '--none'], "unknown option '--none'"],
  ])('%j fails with JSON instead of a sentence', async (words, detail) => {
    const [code, output] = await run(...words);
    expect([code, JSON.parse(output).detail]).toEqual([1, expect.stringContaining(detail)]);
  });
});

describe('an operator', () => {
  it('shows in a trace how to resolve a person in review', async () => {
    const body = { email: 'twice@example.org', firstName: 'Eve', lastName: 'Roe' };
    for (const id of ['twice-1', 'twice-2']) await service.call('PUT', `/v1/providers/${id}`, { body });
    await until('one needs a review', async () => {
      const { body: second } = await service.call('GET', '/v1/providers/twice-2', { wait: 1 });
      return second.sync.state === 'needs-review';
    });
    const [, output] = await run('trace', 'provider', 'twice-2');
    expect(output).toMatch(/^choice {4}resolve provider twice-2 [a-z]+: .+$/m);
    expect(output).not.toMatch(/twice@|Eve|Roe/);
  });

  it('creates, uses, rotates and revokes a key', async () => {
    const made = JSON.parse((await run('keys', 'create', 'r', '--scopes', 'people:read', '--json'))[1]);
    const next = JSON.parse((await run('keys', 'rotate', made.id, '--overlap-seconds', '0', '--json'))[1]);
    expect([next.name, next.id === made.id]).toEqual(['r', false]);
    const [code, output] = await runWith({ NOTEBRIDGE_KEY: made.key }, 'status', '--json');
    expect([code, JSON.parse(output)]).toMatchObject([
      1,
      { status: 401, type: 'urn:notebridge:problem:unauthenticated' },
    ]);
    const use = async () => (await runWith({ NOTEBRIDGE_KEY: next.key }, 'people'))[0];
    expect(await use()).toBe(0);
    expect((await run('keys'))[1]).toContain(next.id);
    await run('keys', 'revoke', next.id);
    expect(await use()).toBe(1);
  });

  it('finds a session request without an answer and resolves it', async () => {
    const input = { text: { text: 'Discussed the quarry.' } };
    const body = { provider: 'p1', noteTemplateIds: [SOAP], input, partnerAppointmentId: 'visit-17' };
    world.injectFault({ operation: 'createSession', kind: 'refuse' });
    await service.call('POST', '/v1/sessions', { body });
    await outcomeIsUnknown('sessions');
    const [, output] = await run('sessions', '--state', 'Unknown');
    expect(output).toMatch(/Outcome unknown +– +p1 +visit-17 +–$/m);
    expect(output).not.toContain('quarry');
    const id = idIn(output);
    const linked = await run('sessions', 'resolve', id, 'link', '--to', 'made-up');
    expect(linked).toEqual([1, expect.stringContaining('no session with this id')]);
    const created = await run('sessions', 'resolve', id, 'create');
    expect(created).toEqual([0, expect.stringMatching(`^${id}: (requested|in progress|processing|done)`)]);
    expect((await run('sessions', '--state', 'Unknown'))[1]).toContain('No matching sessions');
  });

  it('finds a compliance job without an answer and abandons it', async () => {
    world.injectFault({ operation: 'submitComplianceJob', kind: 'refuse' });
    const { body } = await service.call<UploadAddressResponse>('POST', '/v1/compliance/upload-url', { body: {} });
    await fetch(body.uploadUrl, { method: body.method, headers: body.headers, body: '%PDF-1.7' });
    await service.call('POST', '/v1/compliance/jobs', { body: { files: [{ id: 'visit-17', url: body.url }] } });
    await outcomeIsUnknown('compliance_jobs');
    const [, output] = await run('compliance', '--state', 'Unknown');
    expect(output).toMatch(/Outcome unknown +submission-unknown +1 +–$/m);
    const id = idIn(output);
    expect(await run('compliance', 'resolve', id, 'abandon')).toEqual([0, `${id}: abandoned, abandoned\n`]);
  });

  const outcomeIsUnknown = (table: string) =>
    until('its outcome is unknown', async () => {
      return (await world.sql(`SELECT FROM ${table} WHERE state = 'Unknown'`)).length > 0;
    });

  it('shows the number of people in review with any key, without reading a person', async () => {
    const status = async (scope: string): Promise<Ended> => {
      const { id, key } = JSON.parse((await run('keys', 'create', scope, '--scopes', scope, '--json'))[1]);
      const ended = await runWith({ NOTEBRIDGE_KEY: key }, 'status');
      const { items } = (await service.call<Page<AuditResponse>>('GET', `/v1/audit?keyId=${id}`)).body;
      expect(items.filter(({ outcome }) => outcome === 'ok')).toEqual([]);
      return ended;
    };
    const lines =
      /^ {2}✗ Providers that need a decision: \d+\.\n {4}See npx notebridge people --kind provider --state needs-review/m;
    for (const scope of ['operations', 'people:read'])
      expect(await status(scope)).toEqual([2, expect.stringMatching(lines)]);
    expect((await run('status'))[1]).toContain('– recorder: set PLATFORM_PARTNER_DOMAIN');
  });

  it('counts several deliveries before it replays them, after confirmation', async () => {
    expect((await run('replay', '--state', 'dead'))[1]).toContain('No matching deliveries');
    await world.sql(
      `INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index, subject, state, due_at)
       SELECT decode(md5(n::text), 'hex'), '\\x00', 0, 0, 's-1', 'dead', NULL FROM generate_series(1, 3) n`,
    );
    expect(await run('replay', '--state', 'dead')).toEqual([2, expect.stringContaining('3 deliveries would be')]);
    const [code, output] = await run('replay', '--state', 'dead', '--yes', '--json');
    expect([code, JSON.parse(output)]).toMatchObject([0, { dryRun: false, count: 3 }]);
  });
});

describe('resolve-all', () => {
  const people = ['clients/lost-1', 'clients/lost-2'];
  const body = { firstName: 'Eve', lastName: 'Roe', providers: ['p1'] };
  const resolveAll = (...more: string[]) => run('resolve-all', 'create-unknown', 'create', ...more);
  const are = (state: string, paths: string[]) =>
    until(`${paths} are ${state}`, async () => {
      const found = await Promise.all(paths.map((path) => service.call('GET', `/v1/${path}`, { wait: 1 })));
      return found.every(({ body: { sync } }) => sync.state === state || sync.error?.code === state);
    });

  /** Runs it in a terminal, and answers its question. @param before runs between question and answer */
  async function answered(answer: string, before = async () => {}): Promise<Ended> {
    const command = `'${process.execPath}' ${CLI} resolve-all create-unknown create`;
    const terminal = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
      env: { PATH: process.env.PATH, ...connection() },
    });
    let output = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const ended = once(terminal, 'close');
    await until('it asks', () => output.includes('[y/N]'));
    await before();
    terminal.stdin.write(`${answer}\n`);
    const [code] = await ended;
    return [code, output];
  }

  beforeAll(async () => {
    world.injectFault({ operation: 'createClient', kind: 'refuse', count: 2 });
    for (const path of people) await service.call('PUT', `/v1/${path}`, { body });
    await are('create-unknown', people);
  });

  it('only counts without a terminal', async () => {
    const sentence = '2 people with create-unknown would be resolved with create. To do it, add --yes.\n';
    expect(await resolveAll()).toEqual([2, sentence]);
    const [code, output] = await resolveAll('--json');
    expect([code, JSON.parse(output)]).toMatchObject([2, { dryRun: true, count: 2 }]);
    expect((await resolveAll('--kind', 'provider'))[1]).toBe('No matching people accept create.\n');
  });

  it('rejects an unknown code, and lists the known ones', async () => {
    expect(await run('resolve-all', 'lost', 'create')).toEqual([
      1,
      expect.stringMatching(/'lost' is invalid.*create-unknown.*restored-unknown/),
    ]);
  });

  it('resolves no one after "no", or if more people match than were counted', async () => {
    expect(await answered('n')).toEqual([2, expect.stringContaining('would be resolved with create')]);
    const lose = async () => {
      world.injectFault({ operation: 'createClient', kind: 'refuse', count: 1 });
      await service.call('PUT', '/v1/clients/lost-3', { body });
      await are('create-unknown', ['clients/lost-3']);
    };
    expect(await answered('y', lose)).toEqual([1, expect.stringContaining('The selection has changed')]);
    await are('create-unknown', people);
  });

  it('under a hold, resolves those that are left, who are created after the release', async () => {
    const left = ['clients/lost-2', 'clients/lost-3'];
    const ignore = async () => {
      await service.call('POST', '/v1/clients/lost-1/resolve', { body: { action: 'ignore' } });
    };
    await run('hold', '--reason', 'CASE-1');
    expect(await answered('y', ignore)).toEqual([
      0,
      expect.stringContaining('2 people with create-unknown resolved with create.'),
    ]);
    await are('held', left);
    expect(world.usersOf('lost-2')).toEqual([]);
    await run('release');
    await are('synced', left);
    expect(world.usersOf('lost-2')).toHaveLength(1);
    const [code, output] = await resolveAll('--yes', '--json');
    expect([code, JSON.parse(output)]).toMatchObject([0, { dryRun: true, count: 0 }]);
  });

  it('has a counterpart that retries: people retry', async () => {
    const retry = (...more: string[]) => run('people', 'retry', '--code', 'ignored', ...more);
    expect(await retry('--kind', 'provider')).toEqual([0, 'No matching people accept retry.\n']);
    expect(await retry()).toEqual([2, '1 person with ignored would be retried. To do it, add --yes.\n']);
    expect(await retry('--yes')).toEqual([0, '1 person with ignored retried.\n']);
    await are('create-unknown', ['clients/lost-1']);
    expect(await run('people', 'retry')).toEqual([1, expect.stringContaining('--code')]);
  });
});

describe('an error is one sentence and exit code 1:', () => {
  const oneSentence = (sentence: string) => [1, expect.stringMatching(new RegExp(`^[^\n]*${sentence}[^\n]*\n$`))];

  it.each([
    ['an unknown id', ['trace', 'client', 'missing'], 'No client has this external id'],
    ['a missing file', ['import', '/nowhere/providers.csv'], 'does not exist'],
    ['a folder instead of a file', ['import', '.'], 'is a folder'],
    ['an unwritable place', ['import-rows', 'ID', '--rejected-csv', '/nowhere/r.csv'], 'does not exist'],
    ['a link without a user', ['resolve', 'client', 'c1', 'link'], '--user'],
  ])('%s', async (_what, args, sentence) => {
    expect(await run(...args.map((arg) => (arg === 'ID' ? imported : arg)))).toEqual(oneSentence(sentence));
  });

  it('another program at the URL', async () => {
    const server = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json').end('{}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const [command, address] of [
      ['status', url],
      ['people', url],
      ['people', `${service.url}/console`],
    ] as const) {
      const sentence = `The program at ${address} is not notebridge's API. Is NOTEBRIDGE_URL correct?\n`;
      expect(await runWith({ NOTEBRIDGE_URL: address }, command)).toEqual([1, sentence]);
    }
    server.close();
  });

  it('no service at the URL', async () => {
    const failed = await runWith({ NOTEBRIDGE_URL: 'http://127.0.0.1:1' }, 'people');
    expect(failed).toEqual(oneSentence('notebridge does not answer at http://127\\.0\\.0\\.1:1'));
  });
});

describe('the doctor', () => {
  const settings = () => ({
    PLATFORM_BASE_URL: `${world.simulator.url}/api/v2`,
    PLATFORM_API_KEY: 'simulator-api-key',
    PLATFORM_WEBHOOK_SECRET: 'secret',
    PLATFORM_CONTRACT: 'simulator/contract.json',
    ADMIN_API_KEY: ADMIN_KEY,
    DATABASE_URL: world.database.url,
    DATA_KEYS: world.settings.DATA_KEYS ?? '',
    FINGERPRINT_KEYS: world.settings.FINGERPRINT_KEYS ?? '',
    AUDIT_KEYS: world.settings.AUDIT_KEYS ?? '',
  });

  it('finds no fault, calls no operation of the platform, and warns about odd settings', async () => {
    await run('keys', 'create', 'an administrator', '--scopes', 'admin');
    const before = world.arrivals();
    const [, output] = await runWith(settings(), 'doctor');
    // The service itself may be degraded by the faults of the tests before.
    expect(output.match(/^✗ (?!Service).*$/gm)).toBeNull();
    expect(output).toMatch(/^[✓✗] Service/m);
    expect(output).toContain('✓ Keys');
    expect(output).toMatch(/– Access .*ADMIN_API_KEY is still on\n +Set ADMIN_API_KEY=off/);
    expect(output).toContain(`checkUser: POST ${world.simulator.url}/api/v2/users/check`);
    expect(output).toMatch(/– Addresses[\s\S]* contains \/api twice/);
    expect(world.arrivals()).toBe(before);
  });

  it('names the data key that the settings lack', async () => {
    const other = { DATA_KEYS: `k2:${Buffer.alloc(32, 8).toString('base64')}` };
    const [code, output] = await runWith({ ...settings(), ...other }, 'doctor');
    expect([code, output]).toEqual([
      1,
      expect.stringMatching(/✗ Keys {7}DATA_KEYS lacks the key k1.*Add it after the first key/),
    ]);
  });

  it('prints help, and rejects an unknown option, before any check', async () => {
    const answers = [await run('doctor', '--help'), await run('doctor', '--jsn')];
    expect(answers.map(([code]) => code)).toEqual([0, 1]);
    for (const [, output] of answers) expect(output).not.toContain('Settings');
  });
});

test('a command loads only the package commander, and prints the version', async () => {
  const nodeArgs = ['--require', path.resolve('test/support/print-packages.cjs')];
  const program = await startProgram({ file: CLI, args: ['--version'], nodeArgs });
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect([await program.ended(), program.output()]).toEqual([0, `${version}\n\nPackages: commander.\n`]);
});
