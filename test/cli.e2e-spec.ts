import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { Program } from '../harness/program.js';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { AuditResponse } from '../src/access/audit/audit.dto.js';
import type { ComplianceUploadResponse } from '../src/compliance/compliance.dto.js';
import type { Page } from '../src/http/request/page.js';
import { ADMIN_KEY } from './support/app.js';
import { usePrograms } from './support/programs.js';
import { type Mirror, useMirrors } from './support/service.js';

const newMirror = useMirrors();
const startProgram = usePrograms();
let mirror: Mirror;
let service: Service;
let folder: string;
/** The id of the first import. */
let imported: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-cli-'));
  // No call counts as lost on a machine that stands still for a while.
  mirror = await newMirror({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
  service = await mirror.start();
});
afterAll(() => rmSync(folder, { recursive: true }));

function start(args: string[], env: Record<string, string> = {}): Promise<Program> {
  const connection = { NOTEBRIDGE_URL: service.url, NOTEBRIDGE_KEY: ADMIN_KEY, DATA_DIR: folder };
  return startProgram({ file: 'dist/src/cli/main.js', args, env: { ...connection, ...env } });
}

/** Ends what trouble is left, and answers whoever waits. */
function relieve(): void {
  mirror.simulator.state.faults.clear();
  mirror.simulator.state.timers.cancelAll();
}

/** Runs a command to its end. */
async function notebridge(...args: string[]): Promise<{ code: number | null; output: string }> {
  const program = await start(args);
  const code = await program.ended();
  return { code, output: program.output() };
}

function file(name: string, ...lines: string[]): string {
  const place = path.join(folder, name);
  writeFileSync(place, `${lines.join('\n')}\n`);
  return place;
}

const PROVIDERS = ['externalId,email,firstName,lastName', 'p1,p1@example.org,Ada,Osei', 'p2,p2@example.org,Bo,Lind'];
const CLIENTS = ['externalId,email,firstName,lastName,providers', 'c1,c1@example.com,Cy,Ng,p1|p2', 'c2,,Di,Ru,p2'];

test('import takes several files, watches to the end and ends with 0 when all is done', async () => {
  const { code, output } = await notebridge(
    'import',
    file('providers.csv', ...PROVIDERS),
    file('clients.csv', ...CLIENTS),
  );
  expect(output).toMatch(/completed in .*: 4 rows, \d+ calls to the platform/);
  expect(output).toMatch(/4 {2}created on the platform/);
  imported = /Import ([0-9a-f-]{36})/.exec(output)?.[1] ?? '';
  expect(code).toBe(0);
});

test('import ends with 2 when rows need somebody, and the rejected ones can be fetched, corrected and sent again', async () => {
  const bad = file('clients.csv', CLIENTS[0] ?? '', 'c3,c3@example.com,Ed,Wu,nobody');
  const first = await notebridge('import', bad);
  expect([first.code, first.output]).toEqual([2, expect.stringContaining('1  rejected')]);
  const id = /Import ([0-9a-f-]{36})/.exec(first.output)?.[1] ?? '';

  const rows = await notebridge('import-rows', id, '--outcome', 'rejected');
  expect(rows.output).toMatch(/clients\.csv:2 +c3 +rejected +unknown-provider/);

  const rejected = path.join(folder, 'rejected-clients.csv');
  expect((await notebridge('import-rows', id, '--rejected-csv', rejected)).code).toBe(0);
  const twice = await notebridge('import-rows', id, '--rejected-csv', rejected);
  expect([twice.code, twice.output]).toEqual([1, expect.stringContaining('is there already')]);
  writeFileSync(rejected, readFileSync(rejected, 'utf8').replace('nobody', 'p1'));
  const again = await notebridge('import', rejected);
  expect([again.code, again.output]).toEqual([0, expect.stringContaining('1  created')]);
});

test('with --json an import prints itself at its end, and nothing else', async () => {
  const { code, output } = await notebridge('import', file('providers.csv', ...PROVIDERS), '--json');
  expect([code, JSON.parse(output)]).toMatchObject([0, { state: 'completed', counts: { total: 2 } }]);
});

test.each([
  [['people', '--json'], 0],
  [['doctor'], 1],
])('a reader that has seen enough, as head does, ends a command without a word: %j', async (words, exitCode) => {
  const env = { ...process.env, NOTEBRIDGE_URL: service.url, NOTEBRIDGE_KEY: ADMIN_KEY, DATA_DIR: folder };
  const child = spawn(process.execPath, ['dist/src/cli/main.js', ...words], { env });
  child.stdout.destroy();
  let said = '';
  child.stderr.on('data', (text) => {
    said += text;
  });
  const [code] = await once(child, 'close');
  expect([code, said]).toEqual([exitCode, '']);
});

test.each(['people', 'doctor'])('an output that can not be written (%s) is one sentence and exit code 1', (command) => {
  const env = { ...process.env, NOTEBRIDGE_URL: service.url, NOTEBRIDGE_KEY: ADMIN_KEY, DATA_DIR: folder };
  const full = openSync('/dev/full', 'w');
  const { status, stderr } = spawnSync(process.execPath, ['dist/src/cli/main.js', command], {
    ...{ env, stdio: ['ignore', full, 'pipe'], encoding: 'utf8' },
  });
  closeSync(full);
  expect([status, stderr]).toEqual([1, 'The output can not be written (ENOSPC); what is there is not whole.\n']);
});

test('an upsert that a threshold holds back says which, and ends with 2', async () => {
  const held = await (await newMirror({ env: { IMPORT_MAX_CREATES: '1%,1' } })).start();
  const news = ['e1', 'e2', 'e3'].map((id) => `${id},${id}@example.org,Em,Ek`);
  const program = await start(['import', file('providers.csv', PROVIDERS[0] ?? '', ...news)], {
    NOTEBRIDGE_URL: held.url,
  });
  expect([await program.ended(), program.output()]).toEqual([2, expect.stringContaining('threshold creates: 3 of')]);
  expect(program.output()).toContain('--override creates');
});

test('a dry run plans and sends nothing until it is applied', async () => {
  const before = mirror.arrivals();
  const planned = await notebridge(
    'import',
    file('providers.csv', PROVIDERS[0] ?? '', 'p9,p9@example.org,Flo,Ek'),
    '--dry-run',
  );
  expect(planned.output).toContain('Nothing was sent');
  expect(mirror.arrivals()).toBe(before);
  const id = /apply ([0-9a-f-]{36})/.exec(planned.output)?.[1] ?? '';
  const applied = await notebridge('apply', id);
  expect([applied.code, applied.output]).toEqual([0, expect.stringContaining('1  created')]);
});

test('Ctrl-C stops watching, not the import', async () => {
  mirror.trouble({ operation: 'checkUser', kind: 'slow', ms: 3_600_000 });
  const program = await start(['import', file('providers.csv', PROVIDERS[0] ?? '', 'p8,p8@example.org,Gil,Oz')]);
  const [, id = ''] = await program.printed(/Import ([0-9a-f-]{36})/);
  expect(await program.kill('SIGINT')).toBe(130);
  expect(program.output()).toContain(`npx notebridge imports ${id}`);
  relieve();
  expect((await service.importEnded(id)).counts.created).toBe(1);
});

test('Ctrl-C at the moment at which an import begins to be watched is not lost', () => {
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

test('whom a file holds is asked for when neither its name nor its beginning says', async () => {
  const { code, output } = await notebridge('import', file('export.csv', ...PROVIDERS));
  expect([code, output]).toEqual([1, expect.stringContaining('--kind')]);
});

test('people, trace and resolve show no names', async () => {
  const outputs = [
    await notebridge('people', '--kind', 'client'),
    await notebridge('people', '--external-id', 'c1'),
    await notebridge('trace', 'client', 'c1'),
    await notebridge('resolve', 'client', 'c1', 'retry'),
  ].map(({ output }) => output);
  for (const output of outputs) {
    expect(output).toContain('c1');
    expect(output).not.toMatch(/Cy|Ng|@example/);
  }
  expect(outputs[2]).toContain('createClient');
});

test('a list shows so many at most and says when there are more; as JSON it is whole unless it is told otherwise', async () => {
  const one = await notebridge('people', '--limit', '1');
  expect([one.code, one.output]).toEqual([0, expect.stringMatching(/^There are more than these 1: --limit all/m)]);
  expect(one.output).toMatch(/^provider +p1 /m);
  expect(one.output).not.toMatch(/^provider +p2 /m);
  const lines = async (...more: string[]) => (await notebridge('people', '--json', ...more)).output.trim().split('\n');
  expect(await lines('--limit', '1')).toHaveLength(1);
  const whole = (await lines()).map((line) => (JSON.parse(line) as { externalId: string }).externalId);
  expect(whole).toEqual(expect.arrayContaining(['p1', 'p2', 'c1', 'c2']));
  const none = await notebridge('sessions', '--client', 'c1', '--provider', 'p1', '--since', '2026-01-31');
  expect([none.code, none.output]).toEqual([0, 'There are none like that.\n']);
  const both = await notebridge('people', '--email', 'a@example.org', '--external-id', 'p1');
  expect([both.code, both.output]).toEqual([
    1,
    expect.stringContaining("cannot be used with option '--external-id <id>'"),
  ]);
});

test('a trace says how one who needs a review may be resolved', async () => {
  const body = { email: 'twice@example.org', firstName: 'Eve', lastName: 'Roe' };
  for (const id of ['twice-1', 'twice-2']) await service.call('PUT', `/v1/providers/${id}`, { body });
  await until('one needs a review', async () => {
    const { body: second } = await service.call('GET', '/v1/providers/twice-2', { wait: 1 });
    return second.sync.state === 'needs-review';
  });
  const { output } = await notebridge('trace', 'provider', 'twice-2');
  expect(output).toMatch(/^choice {4}resolve provider twice-2 [a-z]+: .+$/m);
  expect(output).not.toMatch(/twice@|Eve|Roe/);
});

test('what is wrong with the words of a command is JSON where the answer would be', async () => {
  const wrong = [
    [['status', '--json', '--none'], /unknown option '--none'/],
    [['people', '--json', '--kind', 'nobody'], /'--kind <kind>' argument 'nobody' is invalid/],
    [['nothing', '--json'], /unknown command 'nothing'/],
    [['keys', 'rotate-data', '--json', '--none'], /unknown option '--none'/],
    [['audit', 'verify', '--json', '--head', '12'], /number:mac/],
    [['audit', 'verify', '--json'], /PLATFORM_BASE_URL/],
    [['doctor', '--json', '--none'], /unknown option '--none'/],
  ] as const;
  for (const [words, detail] of wrong) {
    const { code, output } = await notebridge(...words);
    expect([words, code, JSON.parse(output).detail]).toEqual([words, 1, expect.stringMatching(detail)]);
  }
});

test('a key is made, used and revoked', async () => {
  const made = await notebridge('keys', 'create', 'reader', '--scopes', 'people:read');
  const key = made.output.trim();
  const use = async () => (await start(['people'], { NOTEBRIDGE_KEY: key })).ended();
  expect(await use()).toBe(0);
  const id = /^([0-9a-f-]{36}) +reader/m.exec((await notebridge('keys')).output)?.[1] ?? '';
  await notebridge('keys', 'revoke', id);
  expect(await use()).toBe(1);
});

test('deliveries are listed, and a replay of many is counted before it is done', async () => {
  expect(await notebridge('deliveries')).toMatchObject({
    code: 0,
    output: expect.stringContaining('no such deliveries'),
  });
  expect((await notebridge('deliveries', 'replay', '--state', 'dead')).output).toContain('no such deliveries');
});

describe('a request whose answer was lost is found, and settled by a word', () => {
  const lose = (operation: string) => mirror.trouble({ operation, kind: 'refuse' });
  const isUnknown = (table: string) =>
    until('its answer is lost', async () => {
      return (await mirror.sql(`SELECT 1 FROM ${table} WHERE state = 'Unknown'`)).length > 0;
    });

  test('sessions', async () => {
    const wish = {
      provider: 'p1',
      noteTemplateIds: ['11111111-1111-4111-8111-111111111111'],
      input: { text: { text: 'Spoke of the quarry.' } },
      partnerAppointmentId: 'visit-17',
    };
    lose('createSession');
    await service.call('POST', '/v1/sessions', { body: wish });
    await isUnknown('sessions');
    const { output } = await notebridge('sessions', '--state', 'Unknown');
    expect(output).toMatch(/Unknown +– +p1 +visit-17 +–$/m);
    expect(output).not.toContain('quarry');
    const id = /^[0-9a-f-]{36}/m.exec(output)?.[0] ?? '';

    const nowhere = await notebridge('sessions', 'resolve', id, 'link', '--to', 'made-up');
    expect([nowhere.code, nowhere.output]).toEqual([1, expect.stringContaining('no session with this id')]);
    const done = await notebridge('sessions', 'resolve', id, 'create');
    expect([done.code, done.output]).toEqual([
      0,
      expect.stringMatching(`^${id}: (Requested|InProgress|Processing|Done)`),
    ]);
    await until('it was created', async () => {
      const { body } = await service.call<{ sessionId: string | null }>('GET', `/v1/sessions/${id}`);
      return body.sessionId;
    });
    expect((await notebridge('sessions', '--state', 'Unknown')).output).toContain('none like that');
    const [line = ''] = (await notebridge('sessions', '--json')).output.split('\n');
    expect(JSON.parse(line)).toMatchObject({ id, provider: 'p1' });
  });

  test('compliance jobs', async () => {
    lose('submitComplianceJob');
    const { body } = await service.call<ComplianceUploadResponse>('POST', '/v1/compliance/upload-url', { body: {} });
    await fetch(body.uploadUrl, { method: body.method, headers: body.headers, body: '%PDF-1.7' });
    const files = [{ id: 'visit-17', url: body.url }];
    await service.call('POST', '/v1/compliance/jobs', { body: { files } });
    await isUnknown('compliance_jobs');
    const { output } = await notebridge('compliance', '--state', 'Unknown');
    expect(output).toMatch(/Unknown +submission-unknown +1 +–$/m);
    const id = /^[0-9a-f-]{36}/m.exec(output)?.[0] ?? '';
    const done = await notebridge('compliance', 'resolve', id, 'abandon');
    expect([done.code, done.output.trim()]).toEqual([0, `${id}: Abandoned, abandoned`]);
  });
});

test('status counts what waits for a person, for a key that may see figures, without a look at anybody', async () => {
  await mirror.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, state)
     SELECT gen_random_uuid(), 'client', 'reviewed-' || n, '', '', 'needs-review' FROM generate_series(1, 3) AS n`,
  );
  const seen: Record<string, unknown> = {};
  for (const scope of ['operations', 'people:read']) {
    const { id, key } = JSON.parse((await notebridge('keys', 'create', scope, '--scopes', scope, '--json')).output);
    const program = await start(['status'], { NOTEBRIDGE_KEY: key });
    seen[scope] = [await program.ended(), program.output()];
    const { items } = (await service.call<Page<AuditResponse>>('GET', `/v1/audit?keyId=${id}`)).body;
    expect(items.filter(({ outcome }) => outcome === 'ok')).toEqual([]);
  }
  await mirror.sql(`DELETE FROM people WHERE external_id LIKE 'reviewed-%'`);
  const line = '✗     3 client-needs-review: npx notebridge people --kind client --state needs-review';
  expect(seen).toEqual({
    operations: [2, expect.stringContaining(line)],
    'people:read': [expect.any(Number), expect.stringContaining('the key lacks the scope operations')],
  });
});

test('status says what is off, and the audit trail is searched page by page', async () => {
  const { code, output } = await notebridge('status');
  expect(output).toMatch(/notebridge is (ok|degraded): \d+ of \d+ parts are well/);
  expect(output).toContain('– recorder: set PLATFORM_PARTNER_DOMAIN');
  expect([code, output]).toEqual([expect.any(Number), expect.stringMatching(/^. (waiting|nothing waits) for you$/m)]);
  const audit = await notebridge('audit', '--action', 'POST /v1/imports', '--limit', '1');
  expect(audit.output).toMatch(/admin.*POST \/v1\/imports.*\n/);
  expect(audit.output).toContain('--limit all');
});

test('the sources of requests whose key is not taken are in the audit trail, as the run-book says', async () => {
  const wrong = { authorization: `Bearer ${'0'.repeat(40)}` };
  expect((await fetch(`${service.url}/v1/clients`, { headers: wrong })).status).toBe(401);
  const [, command = ''] =
    /`npx notebridge (audit --action authentication.failed [^`]*)`/.exec(
      readFileSync('docs/operations/run-books.md', 'utf8'),
    ) ?? [];
  const told = await until('it is told', async () => {
    await mirror.sql(`UPDATE failed_attempts SET untold_since = untold_since - interval '1 minute' WHERE untold > 0`);
    const { code, output } = await notebridge(...command.split(' '));
    expect(code).toBe(0);
    return output.startsWith('{') && JSON.parse(output.split('\n')[0] ?? '');
  });
  expect(told).toMatchObject({
    action: 'authentication.failed',
    source: '127.0.0.1',
    outcome: expect.stringMatching(/^\d+ refused$/),
  });
});

test('a key that is rotated gets a successor, and errors are JSON where the answer would be', async () => {
  const made = JSON.parse((await notebridge('keys', 'create', 'r', '--scopes', 'people:read', '--json')).output);
  const next = JSON.parse((await notebridge('keys', 'rotate', made.id, '--overlap-seconds', '0', '--json')).output);
  expect([next.name, next.id === made.id]).toEqual(['r', false]);
  const program = await start(['status', '--json'], { NOTEBRIDGE_KEY: made.key });
  expect([await program.ended(), JSON.parse(program.output())]).toMatchObject([1, { status: 401 }]);
});

test('a replay of many is only counted until it is confirmed', async () => {
  await mirror.sql(
    `INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index, state, due_at)
     SELECT decode(md5(n::text), 'hex'), '\\x00', 0, 0, 'dead', NULL FROM generate_series(1, 3) n`,
  );
  const planned = await notebridge('replay', '--state', 'dead');
  expect([planned.code, planned.output]).toEqual([2, expect.stringContaining('3 deliveries would be')]);
  const done = await notebridge('replay', '--state', 'dead', '--yes', '--json');
  expect([done.code, JSON.parse(done.output)]).toMatchObject([0, { dryRun: false, count: 3 }]);
});

test('capabilities are listed with what they lack', async () => {
  const { output } = await notebridge('capabilities');
  expect(output).toContain('✓ user-mirroring');
  expect(output).toContain('✗ recorder: set PLATFORM_PARTNER_DOMAIN');
});

/** Stands for the id of the first import. */
const KNOWN = 'the first import';

test.each([
  ['an id that nobody named', ['trace', 'client', 'nobody'], 'No client with this external id is known'],
  ['an import that is not known', ['imports', '00000000-0000-4000-8000-000000000000'], 'No import with this id'],
  ['a file that is not there', ['import', '/nowhere/providers.csv'], 'there is no such file'],
  ['a folder in place of a file', ['import', '.'], 'is a folder'],
  ['a place that can not be written', ['import-rows', KNOWN, '--rejected-csv', '/nowhere/r.csv'], 'no such file'],
  ['a link to nobody', ['resolve', 'client', 'c1', 'link'], '--user'],
  ['a link to nothing', ['sessions', 'resolve', KNOWN, 'link'], '--to'],
])('%s is one sentence and exit code 1', async (_what, args, sentence) => {
  const given = args.map((arg) => (arg === KNOWN ? imported : arg));
  const { code, output } = await notebridge(...given);
  expect(code).toBe(1);
  expect(output.trim().split('\n')).toEqual([expect.stringContaining(sentence)]);
});

test('whoever answers and is not the API of notebridge is one sentence that names the address', async () => {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const [command, address] of [
    ['status', url],
    ['people', url],
    ['capabilities', url],
    ['people', `${service.url}/console`],
  ] as const) {
    const program = await start([command], { NOTEBRIDGE_URL: address });
    const sentence = `What answers at ${address} is not the API of notebridge: is NOTEBRIDGE_URL right?\n`;
    expect([await program.ended(), program.output()]).toEqual([1, sentence]);
  }
  server.close();
});

test('a service that is not there is one sentence that names the address', async () => {
  const program = await start(['people'], { NOTEBRIDGE_URL: 'http://127.0.0.1:1' });
  expect(await program.ended()).toBe(1);
  expect(program.output()).toMatch(/^notebridge does not answer at http:\/\/127\.0\.0\.1:1 \(.*\n$/);
});

test('the doctor names every setting that is missing, without a value of any', async () => {
  const program = await start(['doctor'], { PLATFORM_BASE_URL: 'http://elsewhere.example', ADMIN_API_KEY: 'hush' });
  expect(await program.ended()).toBe(1);
  for (const name of ['PLATFORM_BASE_URL', 'PLATFORM_API_KEY', 'PLATFORM_WEBHOOK_SECRET', 'ADMIN_API_KEY']) {
    expect(program.output()).toContain(name);
  }
  expect(program.output()).not.toContain('hush');
});

test('the doctor explains itself, and takes no word that means nothing, without an examination', async () => {
  const help = await notebridge('doctor', '--help');
  expect([help.code, help.output]).toEqual([0, expect.stringContaining('Usage: notebridge doctor')]);
  const typo = await notebridge('doctor', '--jsn');
  expect([typo.code, typo.output]).toEqual([1, expect.stringContaining("unknown option '--jsn'")]);
  for (const { output } of [help, typo]) expect(output).not.toContain('Settings');
});

test('the doctor names DATA_DIR when the embedded database could not be kept there', async () => {
  const env = { PLATFORM_BASE_URL: mirror.simulator.url, PLATFORM_API_KEY: 'k', PLATFORM_WEBHOOK_SECRET: 'secret' };
  const inTheWay = path.join(file('a-file', 'x'), 'data');
  const program = await start(['doctor'], { ...env, ADMIN_API_KEY: ADMIN_KEY, DATA_DIR: inTheWay });
  expect(await program.ended()).toBe(1);
  expect(program.output()).toMatch(/✗ Disk .*a-file.data can not be used \(a file stands in its way\): set DATA_DIR/);
});

test('completion is read from the commands that there are', async () => {
  const { code, output } = await notebridge('completion', 'bash');
  expect([code, output]).toEqual([0, expect.stringMatching(/'client export'\) echo '--output --json --help'/)]);
});

test('it starts at once: of all packages it loads the one that reads its words', async () => {
  const nodeArgs = ['--require', path.resolve('test/support/print-packages.cjs')];
  const program = await startProgram({ file: 'dist/src/cli/main.js', args: ['--version'], nodeArgs });
  expect([await program.ended(), program.output()]).toEqual([0, expect.stringContaining('\nPackages: commander.\n')]);
});

test('the version is that of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(await notebridge('--version')).toEqual({ code: 0, output: `${version}\n` });
});

test('a wait that is no number of seconds is refused before anything is asked for', async () => {
  const { code, output } = await notebridge('resolve', 'client', 'c1', 'retry', '--wait', 'abc');
  expect([code, output]).toEqual([1, expect.stringContaining('Say whole seconds, 0 to 60.')]);
});

test('a head that is cut short is refused, for it would look as if the trail were', async () => {
  const { code, output } = await notebridge('audit', 'verify', '--head', '17:ab12');
  expect([code, output]).toEqual([1, expect.stringContaining('Give it whole, as number:mac.')]);
});

/** What a doctor finds faulty; the service itself may be degraded, by what was done to it or by a slow machine. */
function faultyIn(doctor: Program): string[] {
  return (doctor.output().match(/^✗.*$/gm) ?? []).filter((line) => !line.startsWith('✗ Service'));
}

test('the doctor finds everything well without spending a call of the limit, and says that the first key is on', async () => {
  expect((await notebridge('keys', 'create', 'an administrator', '--scopes', 'admin')).code).toBe(0);
  const before = mirror.arrivals();
  const program = await start(['doctor'], {
    PLATFORM_BASE_URL: mirror.simulator.url,
    PLATFORM_API_KEY: 'simulator-api-key',
    PLATFORM_WEBHOOK_SECRET: 'secret',
    PLATFORM_CONTRACT: 'simulator/contract.json',
    ADMIN_API_KEY: ADMIN_KEY,
    DATABASE_URL: mirror.database.url,
    DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  });
  await program.ended();
  expect(faultyIn(program)).toEqual([]);
  expect(program.output()).toMatch(/^[✓✗] Service/m);
  expect(program.output()).toContain('✓ Keys');
  expect(program.output()).toMatch(/– Access .*ADMIN_API_KEY is still taken beside them\n +Set ADMIN_API_KEY=off/);
  expect(mirror.arrivals()).toBe(before);
  expect(program.output()).toContain('✓ Addresses');
  expect(program.output()).toContain(`checkUser: POST ${mirror.simulator.url}/users/check`);
});

test('the doctor and the start warn about a prefix that stands twice in an address', async () => {
  const settings = {
    PLATFORM_BASE_URL: `${mirror.simulator.url}/api/v2`,
    PLATFORM_API_KEY: 'simulator-api-key',
    PLATFORM_WEBHOOK_SECRET: 'secret',
    PLATFORM_CONTRACT: 'simulator/contract.json',
    ADMIN_API_KEY: 'off',
    DATABASE_URL: mirror.database.url,
    DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  };
  const warning = `createSession is called at POST ${mirror.simulator.url}/api/v2/api/v2/therapy-session, where /api/v2 stands twice`;
  const doctor = await start(['doctor'], settings);
  await doctor.ended();
  expect(faultyIn(doctor)).toEqual([]);
  expect(doctor.output()).toContain(warning);
  expect(doctor.output()).toContain('– Addresses');
  expect(doctor.output()).toMatch(/✓ Access .*ADMIN_API_KEY is off/);
  const service = await mirror.start({ PLATFORM_BASE_URL: settings.PLATFORM_BASE_URL, ROLES: 'api' });
  expect(service.output()).toContain(`"checkUser":"POST ${mirror.simulator.url}/api/v2/users/check"`);
  expect(service.output()).toContain(warning);
  await service.kill();
});

test('the doctor names the data key that the database needs and the settings lack', async () => {
  const program = await start(['doctor'], {
    PLATFORM_BASE_URL: mirror.simulator.url,
    PLATFORM_API_KEY: 'simulator-api-key',
    PLATFORM_WEBHOOK_SECRET: 'secret',
    ADMIN_API_KEY: ADMIN_KEY,
    DATABASE_URL: mirror.database.url,
    DATA_KEYS: `k2:${Buffer.alloc(32, 8).toString('base64')}`,
  });
  expect(await program.ended()).toBe(1);
  expect(program.output()).toMatch(/✗ Keys {7}DATA_KEYS lacks the key k1.*add it behind the first/);
});
