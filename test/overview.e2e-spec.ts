import { until } from '../harness/until.js';
import type { OverviewResponse } from '../src/operations/overview/overview.dto.js';
import { ADMIN_KEY } from './support/app.js';
import { PLATFORM_ACCOUNT } from './support/service.js';
import { useSharedService } from './support/shared-service.js';

const shared = useSharedService({ calls: 300 });

/** Opens a stream; `received` grows with each overview. */
async function listen() {
  const closing = new AbortController();
  const answer = await fetch(`${shared.service.url}/v1/overview`, {
    headers: { authorization: `Bearer ${ADMIN_KEY}`, accept: 'text/event-stream' },
    signal: closing.signal,
  });
  const received: OverviewResponse[] = [];
  const read = async () => {
    let text = '';
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      const events = text.split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) {
        const data = /^event: overview\ndata: (.*)$/.exec(event)?.[1];
        if (data !== undefined) received.push(JSON.parse(data) as OverviewResponse);
      }
    }
  };
  read().catch(() => undefined);
  return { received, close: () => closing.abort() };
}

const overview = async () => (await shared.service.call<OverviewResponse>('GET', '/v1/overview')).body;

test('an overview tells what works, what was called, what waits, and who must act', async () => {
  await shared.mirror.sql(`INSERT INTO call_budgets (account) VALUES ($1) ON CONFLICT DO NOTHING`, [PLATFORM_ACCOUNT]);
  await shared.mirror.sql(
    `INSERT INTO platform_calls (account, operation, lane, granted_at, expires_at, answered_at, status, outcome, worker)
     SELECT $1, 'checkUser', 'bulk', now() - interval '1 hour', now() - interval '59 minutes', now(), 200, outcome, 'w'
     FROM unnest($2::text[]) AS outcome`,
    [PLATFORM_ACCOUNT, ['found', 'absent', 'rejected', 'unreachable']],
  );
  await shared.mirror.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, state)
     SELECT gen_random_uuid(), 'client', 'c-' || n, '', '', 'needs-review' FROM generate_series(1, 1200) AS n`,
  );
  await shared.mirror.sql(
    `INSERT INTO feed_events (cursor, type, subject, data) VALUES (41, 'person.synced', 'clients/c-1', '{}')`,
  );
  // A part that a stalled machine kept from its answer is down for that look, and what was not read in time is null.
  const seen = await until('it is seen, and the database answers', async () => {
    const found = await overview();
    const isWell = found.parts.some(({ name, status }) => name === 'database' && status === 'ok');
    return found.feedCursor === '41' && isWell && found.calls ? found : undefined;
  });
  expect(seen.version).toMatch(/^\d+\.\d+\.\d+$/);
  const { items } = (await shared.service.call<{ items: unknown[] }>('GET', '/v1/capabilities')).body;
  expect(seen.capabilities).toEqual(items);
  expect(seen.parts.find(({ name }) => name === 'database')).toEqual({
    name: 'database',
    status: 'ok',
    sentence: 'PostgreSQL answers and takes writes.',
  });
  expect(seen.parts.map(({ sentence }) => sentence)).not.toContain('It works.');
  expect(seen.calls).toMatchObject({ limit: 300, windowSeconds: 60, used: 0 });
  expect(seen.calls?.history).toHaveLength(72);
  const calls = seen.calls?.history.filter((interval) => interval.calls > 0);
  expect(calls).toEqual([{ at: expect.any(String), calls: 4, refused: 1, failed: 1 }]);
  expect(seen.inbox).toMatchObject({ waiting: 0, waitingSince: null, dead: 0, notUnderstood: 0 });
  const nothing = { people: null, sessions: null, requests: null, imports: null, compliance: null };
  expect(seen.oldestWork).toEqual(nothing);
  expect(seen.waitsForPerson).toEqual([
    { kind: 'client-needs-review', count: 1_001, list: '/v1/clients?state=needs-review' },
  ]);
});

/** What else waits, once the overview knows of so many providers, as no other test has, who are made last. */
async function waitsBeside(providers: number) {
  await shared.mirror.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, state)
     SELECT gen_random_uuid(), 'provider', 'p-' || n, '', '', 'needs-review' FROM generate_series(1, $1::int) AS n`,
    [providers],
  );
  return until('it is seen', async () => {
    const waiting = (await overview()).waitsForPerson ?? [];
    const others = waiting.filter(({ kind }) => kind !== 'provider-needs-review');
    return waiting.some((one) => !others.includes(one) && one.count === providers) ? others : undefined;
  });
}

test('whom somebody decided to ignore waits for nobody', async () => {
  await shared.mirror.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, state, error_code)
     SELECT gen_random_uuid(), 'client', 'c-' || n, '', '', 'failed', CASE WHEN n <= 1100 THEN 'ignored' WHEN n = 1101 THEN 'rejected' END
     FROM generate_series(1, 1102) AS n`,
  );
  expect(await waitsBeside(2)).toEqual([{ kind: 'client-failed', count: 2, list: '/v1/clients?state=failed' }]);
});

test('the plan of a dry run waits for whoever asked for it while it has something to do', async () => {
  const importOf = async (outcome: string, state: string) => {
    const [made] = await shared.mirror.sql<{ id: string }>(
      `INSERT INTO imports (id, kind, mode, dry_run, state, created_by, staged_at, finished_at)
       VALUES (gen_random_uuid(), 'clients', 'upsert', true, $1, 'admin', now(), CASE $1 WHEN 'planned' THEN NULL ELSE now() END)
       RETURNING id`,
      [state],
    );
    await shared.mirror.sql(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, outcome) VALUES ($1, 1, 1, 1, 'client', $2::row_outcome)`,
      [made?.id, outcome],
    );
  };
  await importOf('pending', 'planned');
  await importOf('unchanged', 'planned');
  await importOf('pending', 'completed');
  expect(await waitsBeside(3)).toEqual([{ kind: 'import-dry-run', count: 1, list: '/v1/imports' }]);
});

test('the head of the feed moves with what is written, also when nobody reads the feed', async () => {
  const write = () =>
    shared.mirror.sql(`INSERT INTO feed_events (type, subject, data) VALUES ('person.synced', 'clients/c-1', '{}')`);
  for (const head of ['1', '2']) {
    await write();
    await until(`the head is ${head}`, async () => (await overview()).feedCursor === head);
  }
  const { body } = await shared.service.call<{ items: object[] }>('GET', '/v1/events?after=1');
  expect(body.items).toMatchObject([{ cursor: '2' }]);
});

test('an overview tells how long notes took from their event, and which event still waits', async () => {
  const { sql } = shared.mirror;
  const noteLag = (notes: number) =>
    until(`${notes} notes are seen`, async () => {
      const { noteLag: lag } = await overview();
      return lag?.notes === notes ? lag : undefined;
    });
  expect(await noteLag(0)).toEqual({
    hours: 6,
    notes: 0,
    medianSeconds: null,
    p95Seconds: null,
    worstSeconds: null,
    awaitedSince: null,
  });
  const [session] = await sql<{ id: string }>(
    `INSERT INTO sessions (id, session_id, state, wanted_generation, fetched_generation, last_event_at, fetched_at, due_at)
     VALUES (gen_random_uuid(), 'awaited', 'Processing', 2, 1, '2026-03-01T10:00:00Z', '2026-03-01T09:00:00Z', now() + interval '1 day'),
       (gen_random_uuid(), 'asked-for', 'Processing', 2, 1, '2026-03-01T08:00:00Z', '2026-03-01T09:00:00Z', now() + interval '1 day')
     RETURNING id`,
  );
  const [document] = await sql<{ id: string }>(
    `INSERT INTO session_documents (id, session, note_template_id, session_document_id, position, revision, fingerprint)
     VALUES (gen_random_uuid(), $1, 't', 'd', 0, 1, '') RETURNING id`,
    [session?.id],
  );
  // One of each twenty took ten seconds; one was fetched for its age, one too long ago.
  await sql(
    `INSERT INTO document_revisions (document, revision, session_document_id, notes, fetched_at, event_at)
     SELECT $1, n, 'd', '', at, CASE WHEN n <= 21 THEN at - CASE n WHEN 1 THEN 10 ELSE 2 END * interval '1 second' END
     FROM generate_series(1, 22) AS n,
       LATERAL (SELECT now() - CASE WHEN n = 21 THEN 7 ELSE 1 END * interval '1 hour' AS at) AS moment`,
    [document?.id],
  );
  expect(await noteLag(20)).toMatchObject({
    notes: 20,
    medianSeconds: 2,
    p95Seconds: expect.closeTo(2.4, 5),
    worstSeconds: 10,
    awaitedSince: '2026-03-01T10:00:00.000Z',
  });
  await sql(`UPDATE sessions SET due_at = NULL`);
});

test('those who listen are told at once, and again when it changed, by one look for all', async () => {
  const listeners = [await listen(), await listen()];
  await until('both have the overview', async () => listeners.every(({ received }) => received.length > 0));
  await shared.mirror.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, state, step, due_at)
     VALUES (gen_random_uuid(), 'provider', 'p-1', '', '', 'failed', NULL, NULL)`,
  );
  const failed = { kind: 'provider-failed', count: 1, list: '/v1/providers?state=failed' };
  await until('both are told the same', async () => {
    const [one, other] = listeners.map(({ received }) => received.at(-1));
    const isTold = JSON.stringify(one?.waitsForPerson) === JSON.stringify([failed]);
    return isTold && JSON.stringify(one) === JSON.stringify(other);
  });
  for (const { close } of listeners) close();
});
