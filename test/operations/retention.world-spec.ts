import { randomUUID } from 'node:crypto';
import { beginRegeneration } from '../../simulator/sessions/session-run.js';
import { Audit } from '../../src/audit/audit.js';
import { Clock } from '../../src/config/clock.js';
import { Env } from '../../src/config/env.js';
import { Database } from '../../src/database/database.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import type { FeedPageResponse } from '../../src/feed/feed.dto.js';
import { Retention } from '../../src/operations/retention.js';
import { Intervals } from '../../src/queue/work/intervals.js';
import type { RevisionsResponse } from '../../src/sessions/model/session-view.js';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { appendEvents } from '../support/feed-events.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const sql = (text: string, values?: unknown[]) => world.sql(text, values);
const count = async (from: string) => (await sql(`SELECT 1 FROM ${from}`)).length;

/** Drops what is older than 90 days, or as the settings say. @returns how many rows of each kind were dropped */
function drop(settings: Partial<Env> = {}): Promise<Record<string, number>> {
  const env = Object.assign(new Env(), { RETENTION_DAYS: 90 }, settings);
  const [database, clock, audit] = [world.get(Database), world.get(Clock), world.get(Audit)];
  return new Retention(world.get(PrismaService), database, env, clock, world.get(Intervals), audit).dropOld();
}

describe('retention after 100 days', () => {
  const passes = () => world.advance('100 d');

  test('drops calls in batches, with an audit entry per kind', async () => {
    const call = (rows: number) =>
      sql(
        `INSERT INTO platform_calls (operation, at, outcome, duration_ms)
         SELECT 'createProvider', now(), 'ok', 50 FROM generate_series(1, $1)`,
        [rows],
      );
    await call(10_500);
    await passes();
    await call(1);
    expect((await drop({ CALLS_RETENTION_DAYS: 'off' })).calls).toBeUndefined();
    expect((await drop({ CALLS_RETENTION_DAYS: 101 })).calls).toBe(0);
    expect(await drop()).toMatchObject({ calls: 10_500 });
    expect(await count('platform_calls')).toBe(1);
    expect(await sql('SELECT key_id, action, outcome FROM audit_entries ORDER BY id')).toEqual([
      { key_id: 'system', action: 'retention.calls', outcome: '10000 removed' },
      { key_id: 'system', action: 'retention.calls', outcome: '500 removed' },
    ]);
    expect(new Set(Object.values(await drop()))).toEqual(new Set([0]));
  });

  test('drops handled deliveries, upload URLs and idempotency records', async () => {
    const record = `INSERT INTO idempotency_records (id, scope_hash, request_hash, lease_token, lease_until, expires_at)
      VALUES (gen_random_uuid(), $1, '', gen_random_uuid(), now(), now() + interval '1 day')`;
    const url = 'INSERT INTO handed_out_urls (fingerprint, handed_out_at) VALUES ($1, now())';
    for (const state of ['processed', 'ignored', 'failed', 'dead', 'received']) {
      await sql(
        `INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index, subject, state, received_at)
         VALUES ($1, '', 0, 0, $2, $2, now())`,
        [Buffer.from(state), state],
      );
    }
    await sql(url, ['old']);
    await sql(record, [Buffer.from('old')]);
    await world.advance('100 d');
    await sql(url, ['young']);
    await sql(record, [Buffer.from('young')]);
    expect((await drop({ RECORDINGS_RETENTION_DAYS: 'off', DELIVERIES_RETENTION_DAYS: 101 })).deliveries).toBe(0);
    expect(await count('handed_out_urls')).toBe(2);
    expect(await drop()).toMatchObject({ deliveries: 2, handedOut: 1 });
    for (const table of ['handed_out_urls', 'idempotency_records'])
      expect([table, await count(table)]).toEqual([table, 1]);
  });

  test('drops the oldest feed events, and cursors continue also after the last one', async () => {
    await appendEvents(world, 4);
    await passes();
    await appendEvents(world, 1);
    expect((await drop({ FEED_RETENTION_DAYS: 101 })).events).toBe(0);
    expect((await drop()).events).toBe(4);
    const left = () => sql('SELECT cursor FROM feed_events ORDER BY id');
    expect(await left()).toEqual([{ cursor: '5' }]);
    await passes();
    expect((await drop()).events).toBe(1);
    await appendEvents(world, 1);
    expect(await left()).toEqual([{ cursor: '6' }]);
    const { body } = await world.call<FeedPageResponse>('GET', '/v1/events?after=1-5');
    expect(body).toMatchObject({ items: [{ cursor: '1-6' }], cursor: '1-6' });
  });

  test('drops the personal data in rows of finished imports, and keeps their outcomes', async () => {
    const [finished, running] = [randomUUID(), randomUUID()];
    for (const id of [finished, running]) {
      await sql(
        `INSERT INTO imports (id, kind, mode, dry_run, state, opened_at, files, finished_at)
         VALUES ($1, 'clients', 'upsert', false, 'completed', now(), '', CASE WHEN $2 THEN now() END)`,
        [id, id === finished],
      );
      await sql(
        `INSERT INTO import_rows (import_id, row_no, file, line, says, profile, cells, profile_hash, email_fingerprint, outcome, code)
         VALUES ($1, 1, 1, 2, 'person', 'x', NULL, 'x', 'x', 'failed', 'bad'),
           ($1, 2, 1, 3, 'rejected', NULL, 'x', NULL, NULL, 'rejected', 'bad'),
           ($1, 3, 0, 0, 'deleted', NULL, NULL, NULL, NULL, 'deleted', NULL)`,
        [id],
      );
    }
    await passes();
    expect(await drop()).toMatchObject({ plans: 0, importRows: 2 });
    const rows = `SELECT outcome, code, num_nonnulls(profile, cells, profile_hash, email_fingerprint) AS personal
      FROM import_rows WHERE import_id = $1 ORDER BY row_no`;
    expect(await sql(rows, [finished])).toEqual([
      { outcome: 'failed', code: 'bad', personal: 0 },
      { outcome: 'rejected', code: 'bad', personal: 0 },
      { outcome: 'deleted', code: null, personal: 0 },
    ]);
    expect(await count('import_rows WHERE num_nonnulls(profile, cells) > 0')).toBe(2);
  });

  test('cancels a plan that was never applied, and drops the data in its rows once it has ended', async () => {
    const [old, young, running] = [randomUUID(), randomUUID(), randomUUID()];
    const plan = async (id: string, state = 'planned') => {
      await sql(
        `INSERT INTO imports (id, kind, mode, dry_run, state, opened_at, files)
         VALUES ($1, 'clients', 'upsert', true, $2, now(), '')`,
        [id, state],
      );
      const insert = `INSERT INTO import_rows (import_id, row_no, file, line, says, profile) VALUES ($1, 1, 1, 2, 'person', 'x')`;
      await sql(insert, [id]);
    };
    await plan(old);
    await plan(running, 'running');
    await passes();
    await plan(young);
    expect(await drop()).toMatchObject({ plans: 1, importRows: 0 });
    expect(await sql(`SELECT id FROM imports WHERE state = 'cancelled'`)).toEqual([{ id: old }]);
    await sql('UPDATE imports SET finished_at = now() WHERE id = $1', [old]);
    expect(await drop()).toMatchObject({ plans: 0, importRows: 1 });
  });

  test('drops stored platform answers with the notes or the transcripts, by the shorter setting', async () => {
    const answer = 'INSERT INTO processing_sessions (processing_id, answer, updated_at) VALUES ($1, $2, now())';
    await sql(answer, ['old', 'x']);
    await sql(answer, ['none', null]);
    await passes();
    await sql(answer, ['young', 'x']);
    expect((await drop()).processingAnswers).toBeUndefined();
    expect((await drop({ NOTES_RETENTION_DAYS: 200 })).processingAnswers).toBe(0);
    expect((await drop({ NOTES_RETENTION_DAYS: 200, TRANSCRIPTS_RETENTION_DAYS: 30 })).processingAnswers).toBe(1);
    const kept = await sql('SELECT processing_id FROM processing_sessions WHERE answer IS NOT NULL');
    expect(kept).toEqual([{ processing_id: 'young' }]);
  });

  test('drops requests and results of ended compliance jobs if set, and keeps their ends', async () => {
    await sql(`INSERT INTO compliance_jobs (id, job_id, state, files, result, fault, due_at, updated_at, review, give_up_at)
      SELECT gen_random_uuid(), name, state, 'x', result::bytea, fault, due_at::timestamptz, now(),
        CASE name WHEN 'gone' THEN 'result-unreadable' END, CASE name WHEN 'waits' THEN now() + interval '1 h' END
      FROM (VALUES ('done', 'Completed', 'x', NULL, NULL), ('failed', 'Failed', 'x', NULL, NULL),
        ('rejected', 'Rejected', NULL, 'rejected', NULL), ('given up', 'Abandoned', NULL, NULL, NULL),
        ('looked up', 'Completed', 'x', NULL, '2020-01-01'), ('no result', 'Completed', NULL, NULL, NULL),
        ('gone', 'Completed', NULL, 'gone', NULL), ('waits', 'Completed', NULL, NULL, NULL), ('unknown', 'Unknown', NULL, NULL, NULL),
        ('running', 'Submitted', 'x', NULL, NULL)) AS jobs (name, state, result, fault, due_at)`);
    await passes();
    await sql(`INSERT INTO compliance_jobs (id, job_id, state, result) VALUES (gen_random_uuid(), 'y', 'Failed', 'x')`);
    expect((await drop()).complianceJobs).toBeUndefined();
    expect((await drop({ COMPLIANCE_RETENTION_DAYS: 90 })).complianceJobs).toBe(5);
    const removed = 'removed_at IS NOT NULL AND files IS NULL AND result IS NULL';
    expect(await sql(`SELECT job_id, state FROM compliance_jobs WHERE ${removed} ORDER BY job_id`)).toEqual([
      { job_id: 'done', state: 'Completed' },
      { job_id: 'failed', state: 'Failed' },
      { job_id: 'given up', state: 'Abandoned' },
      { job_id: 'no result', state: 'Completed' },
      { job_id: 'rejected', state: 'Rejected' },
    ]);
    const kept = 'compliance_jobs WHERE removed_at IS NULL AND (files IS NOT NULL OR result IS NOT NULL)';
    expect(await count(kept)).toBe(6);
  });
});

describe('notes and transcripts', () => {
  const { newSession, toEnd, read, refresh, notesOf, fetches } = useArrivingSessions(world);
  const get = (path: string, accept?: string) => world.call<{ type: string }>('GET', path, { accept });

  test('are removed by age, the session stays, and a later fetch restores only new content', async () => {
    const old = newSession({ noteTemplateIds: [SOAP] });
    toEnd(old);
    await read(old, 1);
    await world.advance('31 d');
    const young = newSession({ noteTemplateIds: [SOAP] });
    toEnd(young);
    await read(young, 1);
    const settings = { NOTES_RETENTION_DAYS: 30, TRANSCRIPTS_RETENTION_DAYS: 10 };
    for (const removed of [1, 0]) expect(await drop(settings)).toMatchObject({ notes: removed, transcripts: removed });
    for (const kind of ['notes', 'transcripts']) {
      const { body } = await world.call<{ items: object[] }>('GET', `/v1/audit?action=retention.${kind}`);
      expect(body.items).toMatchObject([{ keyId: 'system' }]);
    }

    const path = `/v1/sessions/${old.sessionId}`;
    const expectRemoved = async () => {
      const { documents } = await notesOf(old.sessionId);
      expect(documents).toMatchObject([{ revision: 1, notes: [], removedAt: expect.any(String) }]);
      const { status, body } = await get(`${path}/transcript`);
      expect([status, body.type]).toEqual([410, 'urn:notebridge:problem:transcript-removed']);
      return documents[0]?.documentId;
    };
    const documentId = await expectRemoved();
    expect((await get(`${path}/notes`, 'text/markdown')).text).toContain('were removed at');
    expect((await get(`${path}/insights`)).body).toMatchObject({ topics: null, removedAt: expect.any(String) });
    expect((await get(`/v1/sessions/${young.sessionId}/transcript`)).status).toBe(200);

    const before = fetches(200);
    await refresh(old);
    await world.settle();
    expect(fetches(200)).toBe(before + 1);
    await expectRemoved();

    beginRegeneration(world.platform.simulator.state, old, [SOAP]);
    toEnd(old);
    await read(old, 2);
    const { body } = await world.call<RevisionsResponse>('GET', `${path}/notes/${documentId}/revisions`);
    expect(body.items).toMatchObject([
      { revision: 2, removedAt: null },
      { revision: 1, removedAt: expect.any(String), notes: [] },
    ]);
  });
});
