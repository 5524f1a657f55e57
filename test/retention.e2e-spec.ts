import { randomUUID } from 'node:crypto';
import type { Database } from '../src/database/database.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { openDatabase } from './support/open-database.js';
import { dropOld } from './support/retention.js';

const OLD = `now() - interval '100 days'`;

describe('what was kept long enough', () => {
  let home: TestDatabase;
  let database: Database;
  const run = (sql: string, values: unknown[] = []) => database.pool.query(sql, values);
  const count = async (from: string) => Number((await run(`SELECT count(*) AS n FROM ${from}`)).rows[0].n);
  const drop = () => dropOld(database);

  beforeAll(async () => {
    home = await freshDatabase();
    database = openDatabase(home);
  });

  afterAll(async () => {
    await database.onApplicationShutdown();
    await home.drop();
  });

  it('drops calls in batches, but none that is young', async () => {
    await run(`INSERT INTO call_budgets (account) VALUES ('a')`); // every call is granted under one
    await run(
      `INSERT INTO platform_calls (account, operation, lane, granted_at, expires_at, worker)
       SELECT 'a', 'createUser', 'bulk'::lane, at, at, 'w' FROM generate_series(1, 2500), (VALUES (${OLD})) AS old (at)
       UNION ALL SELECT 'a', 'createUser', 'bulk'::lane, now(), now(), 'w'`,
    );
    expect((await dropOld(database, { CALLS_RETENTION_DAYS: 'off' })).calls).toBeUndefined();
    expect((await dropOld(database, { CALLS_RETENTION_DAYS: 101 })).calls).toBe(0);
    await run(
      `INSERT INTO session_calls (session, operation, begun_at, outcome)
       SELECT gen_random_uuid(), 'getSession', at, 'answered' FROM (VALUES (${OLD}), (now())) AS calls (at)`,
    );
    expect(await drop()).toMatchObject({ calls: 2_500, sessionCalls: 1 });
    expect([await count('platform_calls'), await count('session_calls')]).toEqual([1, 1]);
    expect((await run('SELECT key_id, action, outcome FROM audit_entries ORDER BY id')).rows).toEqual([
      { key_id: 'system', action: 'retention.calls', outcome: '2500 removed' },
      { key_id: 'system', action: 'retention.sessionCalls', outcome: '1 removed' },
    ]);
  });

  it('drops handled deliveries only, and notices', async () => {
    for (const state of ['processed', 'ignored', 'failed', 'dead', 'received']) {
      await run(
        `INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index, state, received_at)
         VALUES ($1, '', 0, 0, $2::delivery_state, ${OLD})`,
        [Buffer.from(state), state],
      );
    }
    await run(`INSERT INTO processing_notices (delivery_id, payload, received_at) VALUES ('d', '', ${OLD})`);
    await run(`INSERT INTO handed_out_urls (fingerprint, handed_out_at) VALUES ('old', ${OLD}), ('young', now())`);
    await run(`INSERT INTO webhook_rejections VALUES (now() - interval '15 days', 'stale', 1), (now(), 'stale', 1)`);
    await run(
      `INSERT INTO idempotency_records (id, scope_hash, lease_token, lease_until, expires_at)
       SELECT gen_random_uuid(), hash::bytea, gen_random_uuid(), now(), now() + days * interval '1 day'
       FROM (VALUES ('expired', -1), ('young', 1)) AS records (hash, days)`,
    );
    expect(await drop()).toMatchObject({
      deliveries: 2,
      notices: 1,
      handedOut: 1,
      rejections: 1,
      idempotencyRecords: 1,
    });
  });

  it('drops events, whether or not anybody read them, but the last that has a cursor, so that cursors go on', async () => {
    await run(
      `INSERT INTO feed_events (cursor, type, at, subject, data)
       SELECT c, 't', ${OLD}, 's', '{}' FROM unnest(ARRAY[1, 2, 3, NULL]) AS c`,
    );
    await run(`INSERT INTO feed_events (type, subject, data) VALUES ('young', 's', '{}')`);
    expect((await drop()).events).toBe(3);
    expect((await run('SELECT cursor, type FROM feed_events ORDER BY id')).rows).toEqual([
      { cursor: '3', type: 't' },
      { cursor: null, type: 'young' },
    ]);
  });

  it('drops what the rows of finished imports say of people, and keeps their outcomes', async () => {
    const [finished, running] = [randomUUID(), randomUUID()];
    for (const [id, finishedAt] of [
      [finished, OLD],
      [running, 'NULL'],
    ]) {
      await run(
        `INSERT INTO imports (id, kind, mode, dry_run, state, created_by, finished_at)
         VALUES ($1, 'clients', 'upsert', false, 'completed', 'admin', ${finishedAt})`,
        [id],
      );
      await run(
        `INSERT INTO import_rows (import_id, row_no, file, line, profile, was, outcome, code)
         VALUES ($1, 1, 1, 2, 'x', NULL, 'skipped', 'changed-since-plan'), ($1, 2, 1, 3, NULL, NULL, 'rejected', 'bad'),
           ($1, 3, 0, 0, NULL, '{"profile": "x"}', 'deleted', NULL)`,
        [id],
      );
      await run(`INSERT INTO import_raw_rows (import_id, first_row, last_row, sealed) VALUES ($1, 1, 2, 'x')`, [id]);
    }
    expect(await drop()).toMatchObject({ plans: 0, importRows: 2, importCells: 1 });
    const { rows } = await run(
      'SELECT outcome, code, profile, was FROM import_rows WHERE import_id = $1 ORDER BY row_no',
      [finished],
    );
    expect(rows).toEqual([
      { outcome: 'skipped', code: 'expired', profile: null, was: null },
      { outcome: 'rejected', code: 'bad', profile: null, was: null },
      { outcome: 'deleted', code: null, profile: null, was: null },
    ]);
    expect(await count('import_rows WHERE profile IS NOT NULL')).toBe(1);
    expect(await count('import_raw_rows')).toBe(1);
  });

  it('cancels a plan that nobody applied, and drops what its rows say once it has ended', async () => {
    const [old, young, wanted] = [randomUUID(), randomUUID(), randomUUID()];
    for (const [id, stagedAt, applyWanted] of [
      [old, OLD, false],
      [young, 'now()', false],
      [wanted, OLD, true],
    ]) {
      await run(
        `INSERT INTO imports (id, kind, mode, dry_run, state, created_by, staged_at, apply_wanted)
         VALUES ($1, 'clients', 'upsert', true, 'planned', 'admin', ${stagedAt}, $2)`,
        [id, applyWanted],
      );
      await run(`INSERT INTO import_rows (import_id, row_no, file, line, profile) VALUES ($1, 1, 1, 2, 'x')`, [id]);
    }
    expect(await drop()).toMatchObject({ plans: 1, importRows: 0 });
    const { rows } = await run(`SELECT id FROM imports WHERE state = 'cancelled'`);
    expect(rows).toEqual([{ id: old }]);
    await run('UPDATE imports SET finished_at = now() WHERE id = $1', [old]);
    expect(await drop()).toMatchObject({ plans: 0, importRows: 1 });
  });

  it('drops what answers of the platform may hold of notes and transcripts with whichever of the two goes first', async () => {
    const answers = `INSERT INTO processing_sessions (processing_id, answer, updated_at) VALUES
      ('old', 'x', ${OLD}), ('young', 'x', now()), ('none', NULL, ${OLD})`;
    await run(answers);
    expect((await drop()).processingAnswers).toBeUndefined();
    expect((await dropOld(database, { NOTES_RETENTION_DAYS: 200 })).processingAnswers).toBe(0);
    const settings = { NOTES_RETENTION_DAYS: 200, TRANSCRIPTS_RETENTION_DAYS: 30 };
    expect((await dropOld(database, settings)).processingAnswers).toBe(1);
    expect((await run('SELECT processing_id FROM processing_sessions WHERE answer IS NOT NULL')).rows).toEqual([
      { processing_id: 'young' },
    ]);
  });

  it('drops what ended compliance jobs were asked for and what came of them, where a setting says so, and keeps their ends', async () => {
    const jobs = `INSERT INTO compliance_jobs (id, job_id, state, request, result, fault, due_at, updated_at)
      SELECT gen_random_uuid(), name, state, 'x', result::bytea, fault, due_at::timestamptz, ${OLD}
      FROM (VALUES ('done', 'Completed', 'x', NULL, NULL), ('failed', 'Failed', 'x', NULL, NULL),
        ('rejected', 'Rejected', NULL, 'rejected', NULL), ('given up', 'Abandoned', NULL, NULL, NULL),
        ('looked up', 'Completed', 'x', NULL, '2020-01-01'), ('no result', 'Completed', NULL, NULL, NULL),
        ('gone', 'Completed', NULL, 'gone', NULL), ('unknown', 'Unknown', NULL, NULL, NULL),
        ('running', 'Submitted', 'x', NULL, NULL)) AS jobs (name, state, result, fault, due_at)`;
    await run(jobs);
    await run(`INSERT INTO compliance_jobs (id, job_id, state, result) VALUES (gen_random_uuid(), 'y', 'Failed', 'x')`);
    expect((await drop()).complianceJobs).toBeUndefined();
    expect((await dropOld(database, { COMPLIANCE_RETENTION_DAYS: 90 })).complianceJobs).toBe(4);
    const { rows } = await run(
      `SELECT job_id, state FROM compliance_jobs
       WHERE removed_at IS NOT NULL AND request IS NULL AND result IS NULL ORDER BY job_id`,
    );
    expect(rows).toEqual([
      { job_id: 'done', state: 'Completed' },
      { job_id: 'failed', state: 'Failed' },
      { job_id: 'given up', state: 'Abandoned' },
      { job_id: 'rejected', state: 'Rejected' },
    ]);
    expect(
      await count('compliance_jobs WHERE removed_at IS NULL AND (request IS NOT NULL OR result IS NOT NULL)'),
    ).toBe(6);
    expect(await count(`audit_entries WHERE action = 'retention.complianceJobs' AND outcome = '4 removed'`)).toBe(1);
  });

  it('keeps each kind for its own days', async () => {
    await run(`INSERT INTO handed_out_urls (fingerprint, handed_out_at) VALUES ('kept', ${OLD})`);
    await run(`INSERT INTO feed_events (type, at, subject, data) VALUES ('kept', ${OLD}, 's', '{}')`);
    const kept = { RECORDINGS_RETENTION_DAYS: 'off', FEED_RETENTION_DAYS: 101 } as const;
    const dropped = await dropOld(database, kept);
    expect([dropped.handedOut, dropped.events]).toEqual([undefined, 0]);
    expect(await drop()).toMatchObject({ handedOut: 1, events: 1 });
  });

  it('finds nothing more', async () => {
    expect(new Set(Object.values(await drop()))).toEqual(new Set([0]));
  });
});
