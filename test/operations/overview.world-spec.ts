import type { OverviewResponse } from '../../src/operations/overview/overview.dto.js';
import { appendEvents } from '../support/feed-events.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

/** The overview of this moment; an older one is kept for two seconds. */
const overview = async () => {
  await world.advance('3 s');
  return (await world.call<OverviewResponse>('GET', '/v1/overview')).body;
};

const addPeople = (kind: string, state: string, count: number, code: string | null = null) =>
  world.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, state, error_code)
     SELECT gen_random_uuid(), $1::person_kind, concat($2::text, $4::text, n), '', '', $2::text, $4
     FROM generate_series(1, $3::int) AS n`,
    [kind, state, count, code],
  );

test('shows version, capabilities, parts, calls, inbox, due work and people who need a decision', async () => {
  await world.sql(
    `INSERT INTO platform_calls (operation, at, status, outcome, duration_ms)
     SELECT 'checkUser', now() - interval '1 hour', 200, outcome, 50 FROM unnest($1::text[]) AS outcome`,
    [['found', 'absent', 'rejected', 'unreachable']],
  );
  await addPeople('client', 'needs-review', 1_200);
  await addPeople('client', 'failed', 1_100, 'ignored');
  await addPeople('client', 'failed', 2);
  const seen = await overview();
  expect(seen.version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(seen.capabilities).toEqual((await world.call<{ items: unknown[] }>('GET', '/v1/capabilities')).body.items);
  expect(seen.parts.find(({ name }) => name === 'database')).toEqual({
    name: 'database',
    status: 'ok',
    sentence: 'PostgreSQL answers and accepts writes.',
    causedBy: null,
  });
  expect(seen.parts.map(({ sentence }) => sentence)).not.toContain('Healthy.');
  expect(seen.calls).toMatchObject({ limit: 6_000, windowSeconds: 60, used: 0 });
  expect(seen.calls?.history).toHaveLength(72);
  const calls = seen.calls?.history.filter((interval) => interval.calls > 0);
  expect(calls).toEqual([{ at: expect.any(String), calls: 4, refused: 1, failed: 1 }]);
  expect(seen.inbox).toMatchObject({ waiting: 0, waitingSince: null, dead: 0, notUnderstood: 0 });
  const nothing = { people: null, sessions: null, requests: null, imports: null, compliance: null };
  expect(seen.oldestWork).toEqual(nothing);
  // People whose failure an operator ignored need no decision; counts end at 1,001.
  expect(seen.decisions).toMatchObject([
    { kind: 'client-needs-review', count: 1_001, list: '/v1/clients?state=needs-review' },
    {
      kind: 'client-failed',
      count: 2,
      list: '/v1/clients?state=failed',
      cause: 'Clients that the platform rejected: 2.',
    },
  ]);
});

test('shows since when the oldest work of a kind has been due', async () => {
  const dueAt = world.now().toISOString();
  await world.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, state, step, due_at)
     SELECT gen_random_uuid(), 'client', concat('due-', n), '', '', 'pending', 'checkUser', $1::timestamptz + n * interval '1 second'
     FROM generate_series(0, 1) AS n`,
    [dueAt],
  );
  expect((await overview()).oldestWork).toMatchObject({ people: dueAt, sessions: null });
});

test('lists the plan of a dry run only while it would change something', async () => {
  for (const [outcome, state] of [
    ['pending', 'planned'],
    ['unchanged', 'planned'],
    ['pending', 'completed'],
  ]) {
    const [made] = await world.sql<{ id: string }>(
      `INSERT INTO imports (id, kind, mode, dry_run, state, opened_at, files, finished_at)
       VALUES (gen_random_uuid(), 'clients', 'upsert', true, $1, now(), '', CASE $1 WHEN 'planned' THEN NULL ELSE now() END)
       RETURNING id`,
      [state],
    );
    await world.sql(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, says, outcome)
         VALUES ($1, 1, 1, 1, 'client', 'person', $2::row_outcome)`,
      [made?.id, outcome],
    );
  }
  expect(await overview()).toMatchObject({
    status: 'ok',
    decisions: [{ kind: 'import-dry-run', count: 1, list: '/v1/imports', optional: true }],
  });
});

test('shows the head of the feed even if no client reads the feed', async () => {
  await appendEvents(world, 1);
  const { feedCursor } = await overview();
  await appendEvents(world, 1);
  expect([feedCursor, (await overview()).feedCursor]).toEqual(['1-1', '1-2']);
  const { body } = await world.call<{ items: object[] }>('GET', `/v1/events?after=${feedCursor}`);
  expect(body.items).toMatchObject([{ cursor: '1-2' }]);
});

test('shows the delay from event to note, and the oldest event without its note', async () => {
  expect((await overview()).noteLag).toEqual({
    hours: 6,
    notes: 0,
    medianSeconds: null,
    p95Seconds: null,
    worstSeconds: null,
    awaitedSince: null,
  });
  const [session] = await world.sql<{ id: string }>(
    `INSERT INTO sessions (id, session_id, state, changes, fetched_changes, last_event_at, fetched_at, due_at)
     VALUES (gen_random_uuid(), 'awaited', 'Processing', 2, 1, '2026-03-01T10:00:00Z', '2026-03-01T09:00:00Z', now() + interval '1 day'),
       (gen_random_uuid(), 'asked-for', 'Processing', 2, 1, '2026-03-01T08:00:00Z', '2026-03-01T09:00:00Z', now() + interval '1 day')
     RETURNING id`,
  );
  const [document] = await world.sql<{ id: string }>(
    `INSERT INTO session_documents (id, session, note_template_id, session_document_id, position, revision, fingerprint)
     VALUES (gen_random_uuid(), $1, 't', 'd', 0, 1, '') RETURNING id`,
    [session?.id],
  );
  // One of twenty took ten seconds. Revision 21 is too old, and 22 was fetched without an event.
  await world.sql(
    `INSERT INTO document_revisions (document, revision, session_document_id, notes, fetched_at, event_at)
     SELECT $1, n, 'd', '', at, CASE WHEN n <= 21 THEN at - CASE n WHEN 1 THEN 10 ELSE 2 END * interval '1 second' END
     FROM generate_series(1, 22) AS n,
       LATERAL (SELECT now() - CASE WHEN n = 21 THEN 7 ELSE 1 END * interval '1 hour' AS at) AS moment`,
    [document?.id],
  );
  expect((await overview()).noteLag).toMatchObject({
    notes: 20,
    medianSeconds: 2,
    p95Seconds: expect.closeTo(2.4, 5),
    worstSeconds: 10,
    awaitedSince: '2026-03-01T10:00:00.000Z',
  });
});
