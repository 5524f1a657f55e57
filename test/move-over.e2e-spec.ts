import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { runWorkload } from '../harness/workload.js';
import { withClient } from '../src/database/database.js';
import type { Page } from '../src/http/request/page.js';
import type { SessionResponse } from '../src/sessions/model/session-view.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from './support/app.js';
import { describeOnBothBackends } from './support/backends.js';
import { usePrograms } from './support/programs.js';
import { restore } from './support/restore.js';
import { useMirrors } from './support/service.js';

/** So long a shutdown waits for a last call: one that a stalled machine makes late is no fault. */
const PATIENT = { PLATFORM_TIMEOUT_SECONDS: '60' };

/** A session that has notes. */
async function withNotes(service: Service): Promise<string> {
  const { body } = await service.call<Page<SessionResponse>>('GET', '/v1/sessions?limit=50');
  const session = body.items.find(({ notesRevision }) => notesRevision > 0);
  if (!session) throw new Error('No session has notes.');
  return session.id;
}

/** A client, and the notes of a session. */
async function lookUp(service: Service, sessionId: string): Promise<object[]> {
  const answers = [
    await service.call<object>('GET', '/v1/clients/c-a-1'),
    await service.call<object>('GET', `/v1/sessions/${sessionId}/notes`),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  return answers.map(({ body }) => body);
}

/** Where the run-book finds the embedded database of a service that runs. */
function embeddedUrl(dataRoot: string): string {
  const cluster = path.join(dataRoot, 'postgres', 'cluster');
  const password = readFileSync(path.join(cluster, 'password'), 'utf8').trim();
  const port = readFileSync(path.join(cluster, 'data', 'postmaster.pid'), 'utf8').split('\n')[3];
  return `postgresql://notebridge:${encodeURIComponent(password)}@127.0.0.1:${port}/notebridge`;
}

// As docs/operations/run-books.md has it, but for pg_dump of PostgreSQL 18, which is not installed everywhere.
describeOnBothBackends('a service that moves from the embedded PostgreSQL', (backend) => {
  const newMirror = useMirrors();
  const start = usePrograms();
  const role = `moved_${randomBytes(6).toString('hex')}`;

  afterAll(() => withClient(process.env.TEST_PG_URL ?? '', (client) => client.query(`DROP ROLE IF EXISTS ${role}`)));

  test('has every person and note there, with the data key of its folder, and goes on', async () => {
    const dataRoot = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'move-'));
    chmodSync(dataRoot, 0o755);
    const mirror = await newMirror({ platform: { stepMs: 0, webhookSecret: WEBHOOK_SECRET }, env: PATIENT });
    const embedded = { DATABASE_URL: undefined, DATA_KEYS: undefined, DATA_DIR: dataRoot };
    const former = await mirror.start(embedded);
    const target = { simulator: mirror.simulator, adminKey: ADMIN_KEY };
    await withClient(embeddedUrl(dataRoot), (database) =>
      runWorkload({ ...target, service: former, database }, 'a', 5, 5),
    );
    const sessionId = await withNotes(former);
    const held = await lookUp(former, sessionId);
    expect(await former.kill('SIGTERM')).toBe(0);

    const idle = await mirror.start({ ...embedded, ROLES: 'api' });
    await restore(embeddedUrl(dataRoot), mirror.database.url);
    expect(await idle.kill('SIGTERM')).toBe(0);

    const serving = Object.assign(new URL(mirror.database.url), { username: role, password: 'password-of-the-tests' });
    const moved = {
      ...backend.env,
      DATABASE_URL: serving.toString(),
      DATA_KEYS: readFileSync(path.join(dataRoot, 'data-keys'), 'utf8').trim(),
    };
    await mirror.migrate({ ...moved, DATABASE_OWNER_URL: mirror.database.url });
    const [api] = await Promise.all([
      mirror.start({ ...moved, ROLES: 'api' }),
      mirror.start({ ...moved, ROLES: 'worker' }),
    ]);
    // What a stalled machine kept from its answer is a fault for that look.
    await until('the doctor finds no fault', async () => {
      const doctor = await start({
        file: 'dist/src/cli/main.js',
        args: ['doctor'],
        env: { ...mirror.settings, ...moved, NOTEBRIDGE_URL: api.url },
      });
      await doctor.ended();
      return !/^✗/m.test(doctor.output());
    });
    expect(await lookUp(api, sessionId)).toEqual(held);
    await withClient(mirror.database.url, (database) => runWorkload({ ...target, service: api, database }, 'b', 3, 3));
  });
});
