import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { compose } from '../../harness/deployment-files.js';
import { fhirFaults } from '../../harness/fhir-faults.js';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import type { Api } from '../../src/cli/api/api.js';
import { addCommands } from '../../src/cli/commands/commands.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from '../support/app.js';
import { blocksOf, commandsIn, ROOT, readPage } from '../support/pages.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';

const read = readPage;
const requirements = read('docs/security-requirements.md');
const shellBlocks = (page: string) => blocksOf(page, 'sh');

/** The pages for users. */
const pages = [
  'README.md',
  'docs/operations/deployment.md',
  'docs/operations/upgrade.md',
  'docs/operations/run-books.md',
  'docs/operations/stores.md',
  'docs/operations/backup.md',
  'docs/operations/uninstall.md',
  'docs/connect-the-platform.md',
  'docs/command-line.md',
  'docs/ehr.md',
  'docs/push-and-feed.md',
  'docs/changed-ids.md',
  'docs/errors.md',
  'docs/fhir.md',
  'docs/recorder.md',
  'docs/imports.md',
  'docs/retention.md',
  'docs/security.md',
  'docs/security-requirements.md',
  'simulator/README.md',
  'CONTRIBUTING.md',
];
const text = pages.map(read).join('\n');

/** The first two blocks start the demo and look at it; from the third on it is one script. */
const [start = '', look = '', ...firstDay] = shellBlocks(read('docs/first-day.md'));

/** All commands in the pages' shell blocks; a command may span several lines. */
const commands = [start, look, ...shellBlocks(text)].flatMap((block) =>
  block
    .trim()
    .replaceAll(/ \\\n\s*/g, ' ')
    .split('\n'),
);
const spoken = commandsIn(text);

/** A shell command with the settings before it. */
function parse(command: string): { settings: string[]; words: string[] } {
  const words = command.split(' ');
  const first = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
  return { settings: words.slice(0, first).map((word) => word.split('=')[0] ?? ''), words: words.slice(first) };
}

const isRun = (command: string) => /^(curl|npx notebridge) /.test(command);
const isNpm = (command: string) => parse(command).words[0] === 'npm';
const isNpmScript = (command: string) => isNpm(command) && parse(command).words[1] !== 'ci';

/** Commands of the programs that run deployments. */
const isOfDeployment = (command: string) => /^(docker|kubectl|systemctl|journalctl) /.test(command);

/** Those that name no process of the service. */
const NAMES_NOTHING =
  /^(docker (build|compose (up|down|build))|kubectl (apply|delete namespace notebridge)|systemctl daemon-reload)\b|--selector=app\.kubernetes\.io\/component=(api|worker) /;

const UNITS = readdirSync(path.join(ROOT, 'deploy/systemd')).map((file) => path.basename(file, '.service'));
const KUBERNETES = ['api', 'worker', 'migrate'].flatMap((file) =>
  [...read(`deploy/kubernetes/${file}.yaml`).matchAll(/^ {2}name: (\S+)$/gm)].map(([, name = '']) => name),
);

/** Every page of the project. */
const documents = ['.', 'client', 'contract', 'docs', 'simulator', 'demo', 'src'].flatMap((start) =>
  readdirSync(path.join(ROOT, start), { recursive: start !== '.', encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => path.join(start, file)),
);

const newWorld = useTestWorlds();
let world: TestWorld;
let service: Service;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-readme-'));
  world = await newWorld({
    // The pages wait at most a minute for a note.
    platform: { webhookSecret: WEBHOOK_SECRET, stepMs: 100 },
    env: { PLATFORM_PARTNER_DOMAIN: 'recorder.example' },
  });
  service = await world.start();
  world.simulator.state.settings.webhookUrl = `${service.url}/webhooks/platform`;
  const files = ['providers', 'clients'].map((kind) => ({
    name: `${kind}.csv`,
    type: 'text/csv',
    content: read(`demo/data/${kind}.csv`),
  }));
  await service.importEnded((await service.startImport('kind=clients', files)).id);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The folder in which npx finds a command of this clone. */
const COMMANDS = path.join(ROOT, 'node_modules/.bin');

/** Runs a line as it is, against the service of this suite. */
function run(command: string): Promise<{ code: number | null; output: string }> {
  const { PATH, HOME } = process.env;
  const env = {
    PATH: `${COMMANDS}${path.delimiter}${PATH}`,
    HOME,
    NOTEBRIDGE_URL: service.url,
    NOTEBRIDGE_KEY: ADMIN_KEY,
    PLATFORM_BASE_URL: world.simulator.url,
    PLATFORM_API_KEY: 'simulator-api-key',
    PLATFORM_WEBHOOK_SECRET: 'secret',
    PLATFORM_CONTRACT: 'simulator/contract.json',
    ADMIN_API_KEY: ADMIN_KEY,
    DATABASE_URL: world.database.url,
    DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    FINGERPRINT_KEYS: `f1:${Buffer.alloc(32, 8).toString('base64')}`,
    AUDIT_KEYS: `a1:${Buffer.alloc(32, 9).toString('base64')}`,
    DATA_DIR: folder,
  };
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', command], { cwd: ROOT, env });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    child.once('close', (code) => resolve({ code, output }));
  });
}

test('every command of the pages is of a tested kind', () => {
  // restore.process-spec.ts runs those of PostgreSQL, which are not installed everywhere.
  const isOfPostgres = (command: string) => /\b(pg_basebackup|pg_dump|pg_restore|psql) /.test(command);
  const others = commands.filter(
    (command) => !isRun(command) && !isNpm(command) && !isOfDeployment(command) && !isOfPostgres(command),
  );
  expect(others).toEqual([
    'cp .env.example .env',
    'deploy/make-secrets.sh', // harness/deployment.spec.ts runs it
    'cp deploy/systemd/*.service /etc/systemd/system/',
    'mkdir --mode=700 /var/lib/postgresql/restored', // restore.process-spec.ts runs it
    'tar --extract --file=/backup/2026-01-31/base.tar.gz --directory=/var/lib/postgresql/restored', // as above
    'touch /var/lib/postgresql/restored/recovery.signal', // as above
    'rm /etc/systemd/system/notebridge-*.service',
    'dropdb --force notebridge', // as above
    'dropuser notebridge_service', // as above
    "redis-cli --scan --pattern 'notebridge:*' | xargs --no-run-if-empty redis-cli unlink",
  ]);
});

test.each(commands.filter(isOfDeployment))('%s: what it names is in the deployment files', (command) => {
  const { words } = parse(command);
  const named = words.flatMap((word) => /^(?:\w+\/|--unit=)?(notebridge-\w+@?)/.exec(word)?.[1] ?? []);
  const services = words[1] === 'compose' ? words.slice(3).filter((word) => /^(api|worker|migrate)$/.test(word)) : [];
  const files = words[0] === 'kubectl' ? KUBERNETES : UNITS;
  for (const name of named) expect([name, files]).toEqual([name, expect.arrayContaining([name])]);
  for (const name of services) expect(Object.keys(compose().services)).toContain(name);
  for (const [, folder = ''] of command.matchAll(/--kustomize (\S+)/g))
    expect(existsSync(path.join(ROOT, folder, 'kustomization.yaml'))).toBe(true);
  expect([command, named.length + services.length > 0 || NAMES_NOTHING.test(command)]).toEqual([command, true]);
});

test('npx runs the command of this clone', async () => {
  const [npx, direct] = [await run('npx notebridge --version'), await run('notebridge --version')];
  expect([npx.code, npx.output]).toEqual([0, expect.stringContaining(direct.output)]);
  expect(direct.output).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('the command of a clone that is not built names the command that builds it', async () => {
  mkdirSync(path.join(folder, 'bin'));
  const copy = path.join(folder, 'bin/notebridge.js');
  copyFileSync(path.join(ROOT, 'bin/notebridge.js'), copy);
  const sentence = 'notebridge is not built yet: run npm run setup in this clone first.\n';
  expect(await run(`node ${copy} status`)).toEqual({ code: 1, output: sentence });
});

/** Without npx, which takes longer than the command, and with files outside the clone. */
const runnable = (command: string): string =>
  command.replaceAll(/^npx /gm, '').replace('--output ', `--output ${folder}/`);

test.each(commands.filter(isRun))('%s', async (command) => {
  // A reader would try again when the database is busy, too.
  const { code, output } = await until('the database is not busy', async () => {
    const ran = await run(runnable(command));
    return /problem:(database|audit)-unavailable/.test(ran.output) ? undefined : ran;
  });
  // Rows of the sample need a decision, so these end with 2.
  const waits = /^npx notebridge (import|status)\b(?!s)/.test(command);
  expect([waits ? 2 : 0, code, output]).toEqual([code, code, output]);
});

test.each(commands.filter(isNpmScript))('%s: the script and its settings exist', (command) => {
  const { settings, words } = parse(command);
  const [, verb, name] = words;
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  expect(Object.keys(scripts)).toContain(verb === 'run' ? name : verb);
  const known = read('.env.example') + read('simulator/options.ts');
  for (const setting of settings) expect(known).toContain(setting);
});

test('every command in the text exists, with its options', async () => {
  const program = new Command('notebridge').version('');
  addCommands(program, {} as Api);
  for (const text of spoken) {
    const words = text.split(' ').slice(2);
    const path: Command[] = [program];
    for (const word of words) {
      const next = path.at(-1)?.commands.find((each) => each.name() === word);
      if (!next) break;
      path.push(next);
    }
    const [command = program] = path.slice(-1);
    if (command === program) expect([text, words[0]]).toEqual([text, expect.stringMatching(/^--/)]);
    const help = [command, ...command.commands].map((each) => each.helpInformation()).join('');
    const options = words.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0] ?? '');
    for (const option of options) expect([text, help]).toEqual([text, expect.stringContaining(option)]);
  }
});

test('the commands of docs/first-day.md lead to a note', async () => {
  const { code, output } = await run(`set -e\n${firstDay.join('')}`);
  expect([code, output]).toEqual([0, expect.stringMatching(/# Session notes[\s\S]*Keeps the plan for the week/)]);
});

test('the FHIR answers about the note of docs/first-day.md are valid R4', async () => {
  type Bundle = { entry: { resource: { id: string } }[] };
  const { body } = await service.call<Bundle>('GET', '/fhir/DocumentReference');
  const paths = ['metadata', 'DocumentReference?author=x', `DocumentReference/${body.entry[0]?.resource.id}`];
  const answers = await Promise.all(paths.map((path) => service.call<object>('GET', `/fhir/${path}`)));
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 200]);
  for (const resource of [body, ...answers.map((answer) => answer.body)]) expect(fhirFaults(resource)).toEqual([]);
});

test('docs/connect-the-platform.md names every operation that the contract leaves open', () => {
  const page = read('docs/connect-the-platform.md');
  const operations = read('docs/reference/contract.md').split('\n### ').slice(1);
  const open = operations.filter((text) => text.includes('\n- to be set: ')).map((text) => text.split('\n')[0] ?? '');
  expect(open.length).toBeGreaterThan(5);
  for (const operation of open) expect(page).toContain(`| \`operations.${operation}\` `);
});

test('the FHIR of docs/imports.md is a provider and a client', async () => {
  const [, content = ''] = /^```json\n([\s\S]*?)^```$/m.exec(read('docs/imports.md')) ?? [];
  const file = { name: 'people.json', type: 'application/fhir+json', content };
  const { id } = await service.startImport('kind=fhir', [file]);
  expect((await service.importEnded(id)).counts).toMatchObject({ total: 2, created: 2 });
});

/** The anchor of a heading on GitHub. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

test.each(documents)('the links of %s lead somewhere', (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)/g)];
  for (const [link, file = '', anchor] of links) {
    const target = path.join(ROOT, file === '' ? page : path.join(path.dirname(page), file));
    expect([link, existsSync(target)]).toEqual([link, true]);
    if (anchor === undefined) continue;
    const anchors = [...readFileSync(target, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, text = '']) => anchorOf(text));
    expect([link, anchors]).toEqual([link, expect.arrayContaining([anchor])]);
  }
});

test('every security requirement and safeguard names existing tests', () => {
  const safeguards = requirements.match(/^(- |\| \d).*$/gm) ?? [];
  expect(safeguards.length).toBeGreaterThan(50);
  for (const safeguard of safeguards) {
    const tests = [...safeguard.matchAll(/`((?:[\w/.-]+spec|faults\/scenarios\/[\w-]+)\.ts)`/g)].map(
      ([, file = '']) => file,
    );
    expect([safeguard, tests.length > 0 && tests.every((file) => existsSync(path.join(ROOT, file)))]).toEqual([
      safeguard,
      true,
    ]);
  }
});
