import fc from 'fast-check';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { type DocumentFilter, type DocumentKey, findDocuments } from '../../src/fhir/documents.repository.js';
import { ANY_TIME, type TimeRange } from '../../src/fhir/search/time-range.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const MINUTE = 60_000;
const at = (minute: number) => new Date(Date.UTC(2026, 2, 1) + minute * MINUTE);

const USERS = ['u-1', 'u-2'];

const seldom = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });

const minute = fc.integer({ min: 0, max: 7 });
const anySession = fc.record({
  id: fc.uuid(),
  updated: minute,
  clients: fc.subarray(USERS),
  documents: fc.array(fc.record({ id: fc.uuid(), versions: fc.array(minute, { minLength: 1, maxLength: 4 }) }), {
    maxLength: 3,
  }),
});
type AnySession = typeof anySession extends fc.Arbitrary<infer T> ? T : never;
const sessions = fc.uniqueArray(anySession, { selector: ({ id }) => id, maxLength: 9 });

const range = fc.oneof(
  fc.constant(ANY_TIME),
  fc.tuple(minute, minute).map(([from, length]) => ({ from: at(from).getTime(), to: at(from + length).getTime() })),
  minute.map((from) => ({ ...ANY_TIME, from: at(from).getTime() })),
);
const anyFilter = fc.record({
  clientUsers: seldom(fc.subarray(USERS)),
  date: range,
  lastUpdated: range,
});

/** When the versions of a document were fetched: at most 5 minutes after its session's last change, because clocks differ. */
const fetchesOf = (updated: number, { versions }: AnySession['documents'][number]) =>
  versions.map((ago) => at(updated + 5 - ago)).sort((a, b) => a.getTime() - b.getTime());

interface Stored {
  readonly session: AnySession;
  readonly id: string;
  readonly fetchedAt: Date;
}

const documentsOf = (all: readonly AnySession[]): Stored[] =>
  all.flatMap((session) =>
    session.documents.map((document) => {
      return { session, id: document.id, fetchedAt: fetchesOf(session.updated, document).at(-1) as Date };
    }),
  );

async function store(all: readonly AnySession[]): Promise<void> {
  await world.sql('TRUNCATE sessions CASCADE');
  for (const { id, clients, documents, updated } of all) {
    await world.sql(
      `INSERT INTO sessions (id, state, client_user_ids, ever_client_user_ids, updated_at, notes_revision)
       VALUES ($1, 'Done', $2, $2, $3, 1)`,
      [id, clients, at(updated)],
    );
    for (const [ordinal, document] of documents.entries()) {
      await world.sql(
        `WITH stored AS (INSERT INTO session_documents (id, session, note_template_id, ordinal, session_document_id, position, revision, fingerprint)
           VALUES ($1, $2, 't', $3, 'd', 1, cardinality($4::timestamptz[]), ''))
         INSERT INTO document_revisions (document, revision, session_document_id, fetched_at)
         SELECT $1, revision, 'd', fetched FROM unnest($4::timestamptz[]) WITH ORDINALITY AS r (fetched, revision)`,
        [document.id, id, ordinal, fetchesOf(updated, document)],
      );
    }
  }
}

const isIn = ({ from, to }: TimeRange, time: Date) => from <= time.getTime() && time.getTime() < to;

/** The ids that a search must give, in their order. */
function expected(all: readonly AnySession[], { clientUsers, document, date, lastUpdated }: DocumentFilter) {
  const key = (found: Stored) => `${at(found.session.updated).toISOString()} ${found.session.id} ${found.id}`;
  return documentsOf(all)
    .filter(({ session }) => !clientUsers || session.clients.some((client) => clientUsers.includes(client)))
    .filter(({ id }) => !document || id === document)
    .filter((found) => isIn(date, found.fetchedAt) && isIn(lastUpdated, at(found.session.updated)))
    .sort((a, b) => (key(a) < key(b) ? -1 : 1))
    .map(({ id }) => id);
}

/** All pages of a search, and their number. */
async function allPages(
  filter: DocumentFilter,
  limits: { count: number; scanned: number },
): Promise<[string[], number]> {
  const ids: string[] = [];
  let after: DocumentKey | undefined;
  for (let pages = 1; pages < 500; pages += 1) {
    const { documents, end } = await world
      .get(PrismaService)
      .transaction((tx) => findDocuments(tx, { ...filter, after }, limits.count, limits.scanned));
    expect(documents.length).toBeLessThanOrEqual(limits.count);
    ids.push(...documents.map(({ documentId }) => documentId));
    if (end === null) return [ids, pages];
    after = end;
  }
  throw new Error('The pages have no end.');
}

it('pages give each matching note exactly once, in order, however few rows a page may scan', async () => {
  await fc.assert(
    fc.asyncProperty(
      ...([
        sessions,
        anyFilter,
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 2, max: 5 }),
        seldom(fc.nat()),
      ] as const),
      async (all, some, count, scanned, which) => {
        await store(all);
        const documents = documentsOf(all);
        const document = which === undefined ? undefined : documents[which % documents.length]?.id;
        const filter = { ...some, document };
        const [ids] = await allPages(filter, { count, scanned });
        expect(ids).toEqual(expected(all, filter));
      },
    ),
    propertyRuns(0.3),
  );
});

it('a page may have no note and still lead to the next one', async () => {
  const session = (n: number, ago: number) => ({
    ...{ id: `0000000${n}-0000-4000-8000-000000000000`, updated: n, clients: [] },
    documents: [{ id: `0000000${n}-0000-4000-8000-000000000001`, versions: [ago] }],
  });
  const all = [session(1, 5), session(2, 5), session(3, 5), session(4, 0)];
  await store(all);
  const filter = { date: { ...ANY_TIME, from: at(9).getTime() }, lastUpdated: { from: 0, to: at(60).getTime() } };
  expect(expected(all, filter)).toHaveLength(1);
  expect(await allPages({ ...filter, date: { ...ANY_TIME, to: 0 } }, { count: 1, scanned: 2 })).toEqual([[], 4]);
});
