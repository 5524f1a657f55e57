import { fillTo, forgetStatistics, planOf, pretendRowCount, type Statement } from '../../harness/query-plans.js';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { statementsOf } from '../support/statements.js';
import { useWorld } from '../world/use-world.js';
import { type Bundle, linkOf, notesIn, useFhir } from './fhir-calls.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { page } = useFhir(world);

const TABLES = ['sessions', 'session_documents', 'document_revisions'];
const ROWS = 20_000;
const MILLION = 1_000_000;

/** Maximum rows that a page of five notes may read: each note has a session, a document and a revision. */
const MAX_READ = 60;

/** Maximum rows that a page without a note may read: 1,000 versions or sessions, each with a document and a version. */
const MAX_SCANNED = 3_010;

const QUERIES = [
  ...['', 'date=ge2000', 'date=ge2026-03-01&date=lt2999', '_lastUpdated=ge2000', '_lastUpdated=ge2000&date=ge2000'],
  ...['_lastUpdated=ge2000&_lastUpdated=lt2999', '_lastUpdated=ge2000&_lastUpdated=lt2999&date=lt2999'],
  ...['_lastUpdated=ge2000&date=ge2000&date=lt2999', 'date=ge2000&date=lt2999'],
  ...['patient.identifier=c-1', 'patient.identifier=c-1&date=ge2000&_lastUpdated=ge2000'],
];

/** Fills the tables: some sessions have notes, and their documents and revisions belong together. */
async function fill(shareWithNotes = 0.1): Promise<void> {
  for (let n = 0; n < 4; n += 1) sessions.toEnd(sessions.newSession());
  await world.settle();
  const connection = await world.database.pool.connect();
  await fillTo(ROWS, connection, 'sessions');
  await connection.query(`SET session_replication_role = replica;
    UPDATE sessions SET client_user_ids = ARRAY[id::text], ever_client_user_ids = ARRAY[id::text], partner_appointment_id = id::text,
      updated_at = to_timestamp(1700000000 + random() * 60000000), notes_revision = (random() < ${shareWithNotes})::int
    WHERE id NOT IN (SELECT session FROM session_documents);
    INSERT INTO session_documents SELECT gen_random_uuid(), s.id, d.note_template_id, d.ordinal, d.session_document_id,
      d.position, d.revision, d.fingerprint, d.incomplete, d.superseded_at
    FROM sessions s, (SELECT * FROM session_documents LIMIT 1) AS d
    WHERE s.id NOT IN (SELECT session FROM session_documents) AND s.notes_revision > 0;
    INSERT INTO document_revisions SELECT d.id, d.revision, d.session_document_id, NULL,
      (SELECT updated_at FROM sessions WHERE id = d.session), NULL, NULL
    FROM session_documents d WHERE d.id NOT IN (SELECT document FROM document_revisions);
    RESET session_replication_role`);
  connection.release();
}

test('a page of a search reads only its own rows, with stale, no and good statistics', async () => {
  await fill();
  const [{ id }] = (await world.sql<{ id: string }>('SELECT id FROM session_documents LIMIT 1')) as [{ id: string }];
  const paths = [...QUERIES, `_id=${id}`].map((query) => `${query}&_count=5`.replace(/^&/, ''));
  const next = async (query: string) => new URL(linkOf(await page(query), 'next') ?? 'http://x/?').search.slice(1);
  const statements = new Map<string, Statement[]>();
  for (const query of paths) {
    for (const each of [query, await next(query)].filter(Boolean)) {
      statements.set(each, await statementsOf(['enable_sort', 'document_revisions'], () => page(each)));
    }
  }
  expect(statements.size).toBeGreaterThan(12);
  const connection = await world.database.pool.connect();
  const knowledge: Record<string, (table: string) => Promise<void>> = {
    none: (table) => forgetStatistics(connection, table),
    stale: (table) => pretendRowCount(MILLION, connection, { table, analysed: false }),
    good: (table) => pretendRowCount(MILLION, connection, { table, analysed: true }),
  };
  for (const [known, learn] of Object.entries(knowledge)) {
    for (const table of TABLES) await learn(table);
    for (const [query, [first, second]] of statements) {
      const [settings, statement] = second ? [first?.text ?? '', second] : ['', first as Statement];
      await connection.query(`BEGIN; ${settings}`);
      const { fullReads, rowsRead } = await planOf(connection, statement, { large: TABLES, execute: true });
      expect([known, query, fullReads, Math.max(rowsRead, MAX_READ)]).toEqual([known, query, [], MAX_READ]);
    }
  }
  connection.release();
});

describe('a page that finds no note', () => {
  const OLD_VERSIONS = `INSERT INTO document_revisions
    SELECT document, -n, session_document_id, notes, '2010-01-01'::timestamptz + n * interval '1 minute', NULL, NULL
    FROM (SELECT * FROM document_revisions LIMIT 1) AS r, generate_series(1, ${ROWS}) AS n`;

  it.each([
    ['because no version has such a date', '_lastUpdated=ge2000&date=lt2000', ''],
    ['because all versions of such a date are superseded', 'date=ge2000&date=lt2020', OLD_VERSIONS],
  ])('%s: reads a bounded number of rows, and has a next link', async (_, query, prepare) => {
    await fill(1);
    if (prepare) await world.sql(prepare);
    await world.sql('ANALYZE');
    let bundle: Bundle | undefined;
    const [settings, statement] = await statementsOf(['enable_sort', 'document_revisions'], async () => {
      bundle = await page(query);
    });
    const connection = await world.database.pool.connect();
    await connection.query(`BEGIN; ${settings?.text}`);
    const plan = await planOf(connection, statement as Statement, { large: TABLES, execute: true });
    connection.release();
    expect([plan.fullReads, Math.max(plan.rowsRead, MAX_SCANNED)]).toEqual([[], MAX_SCANNED]);
    expect(plan.pagesRead).toBeLessThan(4 * MAX_SCANNED);
    expect([bundle && notesIn(bundle), bundle && linkOf(bundle, 'next')]).toEqual([[], expect.any(String)]);
  });
});
