import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Service } from '../../harness/service.js';
import { runWorkload } from '../../harness/workload.js';
import { withClient } from '../../src/database/connect/session.js';
import type { Page } from '../../src/http/request/page.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from '../support/app.js';
import { usePrograms } from '../support/programs.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';

type Variables = Record<string, string | undefined>;

const K2 = `k2:${Buffer.alloc(32, 9).toString('base64')}`;

const newWorld = useTestWorlds();
const startProgram = usePrograms();
let world: TestWorld;
let folder: string;
let settings: Variables;
let service: Service;

async function run(line: string, env: Variables = settings): Promise<[code: number | null, output: string]> {
  const program = await startProgram({ file: 'dist/src/cli/main.js', args: line.split(' '), env });
  return [await program.ended(), program.output()];
}

/** A client and the notes of a session, as the API shows them. */
async function look(of: Service): Promise<object[]> {
  const { body } = await of.call<Page<SessionResponse>>('GET', '/v1/sessions?limit=50');
  const session = body.items.find(({ notesRevision }) => notesRevision > 0);
  const answers = [
    await of.call<object>('GET', '/v1/clients/c-a-1'),
    await of.call<object>('GET', `/v1/sessions/${session?.id}/notes`),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  return answers.map((answer) => answer.body);
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'service-data-'));
  world = await newWorld({
    platform: { stepMs: 0, webhookSecret: WEBHOOK_SECRET },
    env: { PLATFORM_TIMEOUT_SECONDS: '60' },
  });
  settings = world.settings;
});

test('commands work on the database of a running service', async () => {
  service = await world.start({ LOG_LEVLE: 'debug' });
  expect(service.output()).toContain('LOG_LEVLE is not a setting and is ignored. Did you mean LOG_LEVEL?');
  await withClient(world.database.url, (database) =>
    runWorkload({ simulator: world.simulator, adminKey: ADMIN_KEY, service, database }, 'a', 3, 3),
  );
  const verified = await run('audit verify');
  expect(verified).toEqual([0, expect.stringContaining('nothing was changed, removed or inserted')]);
  const heads = path.join(folder, 'heads');
  const [, head] = /^Head: (\S+)$/m.exec(verified[1]) ?? [];
  writeFileSync(heads, `{"level":"info","msg":"notebridge is ready"}\n{"head":"${head}"}\n${head}\n`);
  expect(await run(`audit verify --heads ${heads}`)).toEqual([0, expect.stringContaining('1 head found')]);
  writeFileSync(heads, `1:${'0'.repeat(70)}`);
  expect(await run(`audit verify --heads ${heads}`)).toEqual([
    2,
    expect.stringContaining('later entries were removed'),
  ]);
  writeFileSync(heads, `${head?.slice(0, -1)}`);
  expect(await run(`audit verify --heads ${heads}`)).toEqual([1, expect.stringContaining('Line 1 of')]);
  const signed = await run('keys rotate audit');
  expect(signed).toEqual([0, expect.stringMatching(/audit_links\.mac +\w+: \d+[\s\S]*All values are by \w+\./)]);
  const rotated = await run('keys rotate data');
  expect(rotated).toEqual([0, expect.stringMatching(/people\.profile +k1: \d+[\s\S]*All values are by k1\./)]);
  const [, diagnosis] = await run('doctor', { ...settings, LOG_LEVLE: 'debug', NOTEBRIDGE_URL: service.url });
  expect(diagnosis).toMatch(/^– Settings +complete\n +LOG_LEVLE is not a setting.* LOG_LEVEL\?$/m);
  expect(diagnosis).toMatch(/✓ Database {3}PostgreSQL \d+\S*, 0 migrations to apply/);
});

test('commands without settings work on the database of the demo', async () => {
  const clone = path.join(folder, 'clone');
  mkdirSync(clone);
  const note = { url: service.url, key: ADMIN_KEY, environment: settings };
  writeFileSync(path.join(clone, 'demo.json'), JSON.stringify(note));
  const verified = await run('audit verify', { DATA_DIR: clone });
  expect(verified).toEqual([0, expect.stringMatching(/this clone's demo.*\n.*nothing was changed/)]);
  const half = await run('keys rotate data', { DATA_DIR: clone, DATABASE_URL: 'postgresql://u@127.0.0.1:1/none' });
  expect(half).toEqual([1, expect.stringContaining('PLATFORM_BASE_URL is not set')]);
});

test('commands name the setting of a database that does not answer', async () => {
  const refused = await run('keys rotate data', { ...settings, DATABASE_URL: 'postgresql://u@127.0.0.1:1/none' });
  expect(refused).toEqual([1, expect.stringMatching(/^PostgreSQL .*DATABASE_URL/m)]);
});

test('the first key can go after a rotation to another one', async () => {
  const shown = await look(service);
  expect(await service.kill('SIGTERM')).toBe(0);
  const both = { ...settings, DATA_KEYS: `${K2},${settings.DATA_KEYS}` };
  expect(await run('keys rotate data', both)).toEqual([0, expect.stringContaining('All values are by k2.')]);
  service = await world.start({ DATA_KEYS: K2, ROLES: 'api' });
  expect(await look(service)).toEqual(shown);
});

test('every foreign key whose target can be deleted has an index', async () => {
  const { rows } = await withClient(world.database.url, (client) =>
    client.query(
      `SELECT conname AS key FROM pg_constraint k WHERE contype = 'f' AND confrelid::regclass::text <> 'imports'
         AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indkey[0] = k.conkey[1])`,
    ),
  );
  expect(rows).toEqual([]);
});
