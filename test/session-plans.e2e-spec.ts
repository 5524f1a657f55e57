import type pg from 'pg';
import { asIfThereWere, neverAnalysed, planOf } from '../harness/query-plans.js';
import { until } from '../harness/until.js';
import { sealLinks } from '../harness/user-links.js';
import { Database } from '../src/database/database.js';
import type { HealthReport } from '../src/operations/health-checks.js';
import type { SessionEvent } from '../src/platform/contract/wire-types.js';
import { RequestEvidence } from '../src/sessions/create/request-evidence.js';
import { SessionRequestsRepository } from '../src/sessions/create/session-requests.repository.js';
import { SessionFeedEvents } from '../src/sessions/model/session-feed-events.js';
import { SessionReader } from '../src/sessions/read/session-reader.js';
import { SessionTimeline } from '../src/sessions/read/session-timeline.js';
import { ProcessingRefresher } from '../src/sessions/refresh/processing-refresher.js';
import { SessionRefresher } from '../src/sessions/refresh/refresh.repository.js';
import { SessionEventsRepository } from '../src/sessions/refresh/session-events.repository.js';
import { WantedRefreshes } from '../src/sessions/refresh/wanted-refreshes.repository.js';
import { SessionEventsHandler } from '../src/sessions/session-events.handler.js';
import { testSettings } from './support/app.js';
import { sealedFacts } from './support/session-facts.js';
import { type RequestsApp, startRequestsApp } from './support/session-requests-app.js';
import { statementsOf } from './support/statements.js';

/** Tables that grow with the years. */
const LARGE = [
  'sessions',
  'session_requests',
  'session_aliases',
  'session_documents',
  'document_revisions',
  'session_insights',
  'session_calls',
  'processing_sessions',
  'people',
  'platform_users',
];

/** With the inbox, which works beside: of its statements those alone are looked at that read sessions, too. */
const READ = [...LARGE, 'webhook_deliveries'];

/** Partial indexes over what waits: they are read whole where it is counted. */
const SMALL = [
  'sessions_backlog_idx',
  'sessions_refused_idx',
  'sessions_pending_events_idx',
  'session_requests_open_idx',
  'session_requests_open_key',
  'session_requests_lease_safe_at_idx', // of the attempts that are under way
];

const SESSIONS = 50_000;

/**
 * Rows that one statement may look at, and pages: most, of a list, whose sessions name people. An insert descends each of
 * the table's indexes, and looks once more at what rolled-back inserts left in them; the whole table has thousands.
 */
const FEW = 300;
const FEW_PAGES = { list: 700, other: 250 };

let app: RequestsApp;
let sql: pg.Pool;
let alias: string;

const FILL = [
  // 500 providers and 10,000 clients, whose external ids are p-… and c-…
  `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state)
   SELECT gen_random_uuid(), CASE WHEN n <= 500 THEN 'provider' ELSE 'client' END::person_kind,
     CASE WHEN n <= 500 THEN 'many-p-' ELSE 'many-c-' END || n, '', '', 'user-' || n, 'synced'
   FROM generate_series(1, 10500) n`,
  `INSERT INTO platform_users (platform_user_id, role) SELECT 'former-' || n, 'CLIENT' FROM generate_series(1, 50000) n`,
  // All done years ago, but for one in a thousand; a few are due, and the next ones tomorrow.
  `INSERT INTO sessions (id, session_id, state, provider_user_id, client_user_ids, partner_appointment_id, last_event_at,
     wanted_generation, fetched_generation, answers, fetched_at, fault, due_at, created_at, updated_at)
   SELECT gen_random_uuid(), 'session-' || n, CASE WHEN n % 1000 = 0 THEN 'Error' ELSE 'Done' END,
     'user-' || 1 + n % 500, ARRAY['user-' || 501 + n % 10000], 'appointment-' || n,
     now() - interval '2 years' + n * interval '10 minutes', 1, CASE WHEN n % 5000 = 0 THEN 0 ELSE 1 END, 1, now(), NULL,
     CASE WHEN n % 5000 = 0 THEN now() - interval '1 second' WHEN n % 10 = 0 THEN now() + interval '1 day' END,
     now() - interval '2 years' + n * interval '10 minutes', now() - interval '2 years' + n * interval '10 minutes'
   FROM generate_series(1, ${SESSIONS}) n`,
  `INSERT INTO session_requests (session, state, provider_user_id, correlation_id, input_kind, requested_at, settled_at)
   SELECT id, CASE WHEN n % 10000 = 0 THEN 'Unknown' ELSE 'Settled' END, provider_user_id, partner_appointment_id,
     'text', created_at, created_at FROM (SELECT *, row_number() OVER () AS n FROM sessions) s`,
  `INSERT INTO session_aliases (id, session) SELECT gen_random_uuid(), id FROM sessions`,
  `INSERT INTO session_documents (id, session, note_template_id, session_document_id, position, revision, fingerprint)
   SELECT gen_random_uuid(), id, 'template', 'document-' || id, 0, 1, '' FROM sessions`,
  `INSERT INTO document_revisions (document, revision, session_document_id, notes, fetched_at)
   SELECT id, 1, session_document_id, '', now() FROM session_documents`,
  `INSERT INTO session_insights (session, fingerprint, fetched_at) SELECT id, '', now() FROM sessions`,
  `INSERT INTO processing_sessions (processing_id, session, due_at)
   SELECT 'processing-' || session_id, id, CASE WHEN session_id LIKE '%000' THEN now() ELSE now() + interval '1 day' END
   FROM sessions`,
  `INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index, subject, event_type, state, due_at, received_at)
   SELECT id::text::bytea, '', 0, 0, session_id, 'SESSION_CREATED', 'processed', NULL, created_at FROM sessions`,
  `INSERT INTO session_calls (session, operation, begun_at, outcome)
   SELECT id, 'getSession', created_at, 'answered' FROM sessions`,
];

beforeAll(async () => {
  app = await startRequestsApp({ ROLES: 'worker,api' }, ['getSession', 'getProcessingSession', 'createSession']);
  sql = app.database.sql;
  for (const table of READ) await neverAnalysed(sql, table);
  for (const statement of FILL) await sql.query(statement);
  await sealLinks(sql, testSettings('').DATA_KEYS ?? '');
  await sql.query(
    `UPDATE session_requests SET state = 'Unknown' WHERE session = (SELECT id FROM sessions WHERE session_id = 'session-5')`,
  );
  alias = (await sql.query('SELECT id FROM session_aliases LIMIT 1')).rows[0].id;
  // Of those whose content is read: nothing is without them.
  const { rows: read } = await sql.query(
    `SELECT id, session_id, provider_user_id, client_user_ids FROM sessions
     WHERE session_id = 'session-5' OR id = (SELECT session FROM session_aliases WHERE id = $1)`,
    [alias],
  );
  for (const row of read) {
    await sql.query('UPDATE sessions SET facts = $2 WHERE id = $1', [row.id, sealedFacts(row.id, row)]);
  }
});

afterAll(async () => {
  await app?.close();
});

const HOT = [
  'an event',
  'the turn of a session',
  'the turn of a look-up',
  'the turn of a request',
  'telling the feed',
  'counting what is wanted',
  'a wish for one session',
  'health',
  'reading a session by the platform’s id',
  'reading a session by an alias',
  'a timeline',
  'what is known of a request',
  'a list of all',
  'a list since a moment',
  'a list by provider',
  'a list by client',
  'a list by appointment',
  'a list by a rare state',
  'a list by a state that is never there',
  'a list by provider and rare state',
  'a list by client since a moment',
] as const;

/** Everything that is done again and again, each with a name. A process that stood still claims nothing until it beats. */
function hotWork(): Record<(typeof HOT)[number], () => Promise<unknown>> {
  const of = <T>(type: new (...args: never[]) => T): T => app.service.app.get(type);
  const database = of(Database);
  const reader = of(SessionReader);
  const event = {
    eventType: 'SESSION_PROCESSING_COMPLETED',
    sessionId: 'session-7',
    providerUserId: 'user-8',
    partnerAppointmentId: 'appointment-7',
    aiNotesEnabled: true,
  } satisfies SessionEvent;
  const list = (filter: object) => async () => {
    const { nextCursor } = await reader.list({ limit: 50, ...filter });
    if (nextCursor !== null) await reader.list({ limit: 50, cursor: nextCursor, ...filter });
  };
  const read = async (id: string) => {
    const row = await reader.find(id);
    await reader.insights(id);
    // What is stored here does not open.
    const unreadable = [{ unreadable: ['notes'] }];
    expect((await reader.notes(id)).notes.documents).toMatchObject(unreadable);
    expect((await reader.revisions(id, `document-${row.id}`, { limit: 50 })).items).toMatchObject(unreadable);
  };
  return {
    'an event': () =>
      database.transaction(async (tx) => {
        const id = await of(SessionEventsRepository).recordEvent(tx, event, new Date());
        await of(SessionRequestsRepository).recordEvidence(tx, {
          id,
          sessionId: event.sessionId,
          providerUserId: event.providerUserId,
          partnerAppointmentId: 'appointment-7',
          receivedAt: new Date(),
        });
        await of(SessionEventsHandler).handle(
          {
            deliveryId: 'delivery-8',
            eventType: 'PROCESSING_SESSION_FINISHED',
            receivedAt: new Date(),
            waitingSince: new Date(),
            body: { payload: { processingId: 'processing-session-8' } },
          },
          tx,
        );
      }),
    'the turn of a session': async () => {
      const { due } = of(SessionRefresher);
      const claim = await until('a session is claimed', () => due.claim());
      await due.nextDueAt();
      await of(SessionRefresher).storeFault(claim, 'rejected', 3_600_000, 1);
      due.done(claim.lease);
    },
    'the turn of a look-up': async () => {
      const { due } = of(ProcessingRefresher);
      const claim = await until('a look-up is claimed', () => due.claim());
      await due.nextDueAt();
      const ticket = { generation: 0, answers: 0 };
      await of(ProcessingRefresher).storeAnswer(claim, { raw: {}, session: undefined, sessionId: 'session-9', ticket });
      due.done(claim.lease);
    },
    'the turn of a request': async () => {
      const { due } = of(SessionRequestsRepository).outbox;
      const claim = await due.claim();
      await due.nextDueAt();
      await due.lost('due_at IS NULL');
      if (claim) due.done(claim.lease);
    },
    'telling the feed': () => of(SessionFeedEvents).publish(),
    'counting what is wanted': () => of(WantedRefreshes).countWanted(),
    'a wish for one session': () => of(WantedRefreshes).wantOne('00000000-0000-4000-8000-000000000000'),
    health: async () => (await app.service.call('GET', '/health/ready')).json<HealthReport>(),
    'reading a session by the platform’s id': () => read('session-5'),
    'reading a session by an alias': () => read(alias),
    'a timeline': async () => {
      const { items, nextCursor } = await of(SessionTimeline).page('session-5', { limit: 3 });
      const rest = await of(SessionTimeline).page('session-5', { limit: 50, cursor: nextCursor ?? '' });
      expect([...items, ...rest.items].map(({ kind }) => kind).sort()).toEqual([
        'call',
        'event',
        'notes',
        'request',
        'request',
      ]);
    },
    'what is known of a request': async () => {
      expect((await of(RequestEvidence).show('session-5')).choices).toHaveLength(3);
    },
    'a list of all': list({}),
    'a list since a moment': list({ updatedSince: new Date(Date.now() - 3_600_000).toISOString() }),
    'a list by provider': list({ provider: 'many-p-7' }),
    'a list by client': list({ client: 'many-c-777' }),
    'a list by appointment': list({ appointment: 'appointment-77' }),
    'a list by a rare state': list({ state: 'Error' }),
    'a list by a state that is never there': list({ state: 'Rejected' }),
    'a list by provider and rare state': list({ provider: 'many-p-7', state: 'Error' }),
    'a list by client since a moment': list({ client: 'many-c-777', updatedSince: '1970-01-01' }),
  };
}

const shape = async (name: (typeof HOT)[number]) => {
  const statements = await statementsOf(LARGE, hotWork()[name]);
  const views = [];
  for (const statement of statements.filter(({ text }) => !/^\s*(SET|BEGIN)/.test(text))) {
    const { fullReads, rowsRead, pagesRead } = await planOf(sql, statement, {
      large: READ,
      small: SMALL,
      execute: true,
    });
    views.push({ text: statement.text, fullReads, rowsRead, pagesRead });
  }
  return views;
};

const aMillion = (analysed: boolean) => async () => {
  for (const table of READ) await asIfThereWere(1_000_000, sql, { table, analysed });
};

describe.each([
  ['of which the planner knows nothing', async () => {}],
  ['of which the planner knows that there are a million', aMillion(false)],
  ['of which the planner knows everything', aMillion(true)],
] as const)('among sessions %s', (_which, prepare) => {
  beforeAll(prepare);

  it.each(HOT)('%s reads no table and no index to its end', async (name) => {
    const views = await shape(name);
    expect(views).not.toHaveLength(0);
    for (const { text, fullReads, rowsRead, pagesRead } of views) {
      expect([text, fullReads]).toEqual([text, []]);
      expect([text, Math.min(rowsRead, FEW)]).toEqual([text, rowsRead]);
      const fewPages = name.startsWith('a list') ? FEW_PAGES.list : FEW_PAGES.other;
      expect([text, Math.min(pagesRead, fewPages)]).toEqual([text, pagesRead]);
    }
  });
});
