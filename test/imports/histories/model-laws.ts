import type { World } from '../../../harness/world/world.js';
import type { ImportResponse } from '../../../src/imports/api/import-view.js';
import type { RowOutcome } from '../../../src/imports/model/import.js';
import { ImportsRepository } from '../../../src/imports/model/imports.repository.js';
import { ImportCounts } from '../../../src/imports/run/import-counts.repository.js';
import type { PersonKind } from '../../../src/people/rules/person.js';
import { idOf, type Key, kindOf, type Profile, statementsIn } from './model-files.js';
import type { History, Said, SentImport } from './model-history.js';

interface StoredImport {
  state: string;
  openedAt: Date;
  appliedAt: Date | null;
  finishedAt: Date | null;
}

interface StoredRow {
  file: number;
  line: number;
  kind: PersonKind | null;
  externalId: string | null;
  planned: string | null;
  outcome: RowOutcome;
  code: string | null;
  phase: number | null;
  appliedAt: Date | null;
  settledAt: Date | null;
  providers: string[] | null;
}

/** An import of a history, with its result. */
interface Ended extends SentImport, StoredImport {
  rows: StoredRow[];
}

/** A statement that counts, and who made it. */
interface Counted extends Said {
  by: string;
}

const REPLACED = ['repeated', 'older-version', 'duplicate-id'];

async function read(world: World, sent: SentImport): Promise<Ended> {
  const [stored] = await world.sql<StoredImport>(
    `SELECT state, opened_at AS "openedAt", applied_at AS "appliedAt", finished_at AS "finishedAt" FROM imports WHERE id = $1`,
    [sent.id],
  );
  const rows = await world.sql<StoredRow>(
    `SELECT file, line, kind, external_id AS "externalId", planned, outcome, code, phase, applied_at AS "appliedAt", settled_at AS "settledAt", providers
     FROM import_rows WHERE import_id = $1 ORDER BY row_no`,
    [sent.id],
  );
  return { ...sent, ...(stored as StoredImport), rows };
}

const names = (row: StoredRow, key: Key) => row.kind === kindOf(key) && row.externalId === idOf(key);

/** The statement of an import about a person; undefined if there is none. */
function saidBy(sent: Ended, key: Key, others: readonly Ended[]): Profile | null | undefined {
  if (!sent.appliedAt) return undefined;
  const rows = sent.rows.filter((row) => names(row, key));
  const counting = rows.filter(({ outcome, code }) => outcome !== 'rejected' && !REPLACED.includes(code ?? ''));
  const isCancelled = sent.state !== 'completed';
  const [row] = counting;
  if (row) {
    const said = row.file === 0 ? null : stated(sent, row, key);
    if (row.code === 'apply-failed' || (isCancelled && !row.appliedAt)) return undefined;
    if (row.outcome !== 'skipped') return said;
    if (row.code === 'changed-since-read' || row.code === 'erased') {
      return others.some((other) => isSkippedAfter(other, sent, row, others)) ? undefined : said;
    }
    if (row.code === 'changed-since-plan') return isStale(sent, row, others) ? undefined : said;
    return row.code === 'already-deleted' ? null : undefined;
  }
  if (rows.length > 0 || isCancelled || sent.mode !== 'snapshot') return undefined;
  const isUnclear = sent.rows.some(({ outcome, externalId }) => outcome === 'rejected' && externalId === null);
  const speaksOf = sent.rows.some(({ kind }) => kind === kindOf(key));
  return speaksOf && !isUnclear && !others.some((other) => hasStartedSince(sent, other, key)) ? null : undefined;
}

/** Applying a plan deletes only the people that it lists, who existed when it was made. */
function hasStartedSince(plan: Ended, other: Ended, key: Key): boolean {
  const isBetween = ({ appliedAt }: StoredRow) =>
    appliedAt !== null && appliedAt >= plan.openedAt && plan.appliedAt !== null && appliedAt <= plan.appliedAt;
  return other.openedAt < plan.openedAt && other.rows.some((row) => names(row, key) && isBetween(row));
}

/** A plan cannot count on uploads that ended after its own. */
function isStale(plan: Ended, row: StoredRow, all: readonly Ended[]): boolean {
  return all
    .slice(row.planned === 'needs-review' ? 0 : all.indexOf(plan))
    .some((other) => hasStartedSince(plan, other, `${row.kind}/${row.externalId}` as Key));
}

/** A file's statement about a person. Rows with unknown providers do not count; FHIR clients lose only the providers. */
function stated({ file, rows }: Ended, { providers }: StoredRow, key: Key): Profile | null | undefined {
  const refused = rows.filter(({ code }) => code === 'unknown-provider').map(({ line }) => line);
  const profile = statementsIn(file, refused).get(key);
  if (!profile || file.kind !== 'fhir') return profile;
  return { ...profile, providers: profile.providers.filter((id) => providers?.includes(id)) };
}

/**
 * Rows that an import superseded stay skipped when its own is, too. A person that a later file names, even in a rejected row, is
 * not deleted.
 */
function isSkippedAfter(other: Ended, sent: Ended, row: StoredRow, all: readonly Ended[]): boolean {
  if (other.openedAt <= sent.openedAt || !other.appliedAt) return false;
  const key = `${row.kind}/${row.externalId}` as Key;
  const rows = other.rows.filter((one) => names(one, key));
  const wasInForce = !row.settledAt || !other.finishedAt || row.settledAt <= other.finishedAt;
  if (other.state !== 'completed') return wasInForce && (other.mode === 'snapshot' || rows.length > 0);
  if (other.mode === 'snapshot' && all.some((one) => hasStartedSince(other, one, key))) return true;
  return rows.some(
    ({ code, outcome }) =>
      code === 'apply-failed' ||
      code === 'provider-gone' ||
      code === 'provider-in-use' ||
      (row.planned === 'delete' && outcome === 'rejected'),
  );
}

function statements({ said }: History, imports: readonly Ended[], key: Key): Counted[] {
  const outside = said.filter((one) => one.key === key).map((one) => ({ ...one, by: one.profile ? 'PUT' : 'DELETE' }));
  const inside = imports.flatMap((sent): Counted[] => {
    const profile = saidBy(sent, key, imports);
    return profile === undefined ? [] : [{ key, at: sent.openedAt, profile, by: sent.id }];
  });
  return [...outside, ...inside].sort((a, b) => a.at.getTime() - b.at.getTime());
}

/** A person as the service shows it. */
async function shown(world: World, key: Key) {
  const { status, body } = await world.call('GET', `/v1/${kindOf(key)}s/${idOf(key)}`);
  if (status === 404 || body.sync.state === 'deleted') return { state: 'absent', code: undefined, profile: undefined };
  const { email, firstName, lastName, providers, sync } = body;
  return {
    state: sync.state,
    code: sync.error?.code ?? null,
    profile: { email, firstName, lastName, providers: providers ?? [] },
  };
}

/** Checks what holds whenever the service has no work left. */
export async function checkAlways(world: World, history: History): Promise<void> {
  expect(world.platform.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  for (const sent of history.imports) await checkCounts(world, await read(world, sent));
}

async function checkCounts(world: World, { id, finishedAt, rows }: Ended): Promise<void> {
  const { counts, deletes, state } = (await world.call<ImportResponse>('GET', `/v1/imports/${id}`)).body;
  const count = (isAdded: boolean) => rows.filter(({ file }) => (file === 0) === isAdded);
  const { total, ...outcomes } = counts;
  const sumOf = (numbers: Record<string, number>) => Object.values(numbers).reduce((sum, one) => sum + one, 0);
  expect({ total, sum: sumOf(outcomes), deletes: sumOf(deletes) }).toEqual({
    total: count(false).length,
    sum: count(false).length + (deletes.deleted ?? 0),
    deletes: count(true).length,
  });
  if (!finishedAt) return;
  expect({ state, open: rows.filter(({ outcome, phase }) => outcome === 'pending' || phase !== null) }).toEqual({
    state,
    open: [],
  });
  const record = await world.get(ImportsRepository).find(id);
  if (!record) throw new Error('The import is gone.');
  const { remaining: _, callsMade: __, ...counted } = await world.get(ImportCounts).totals({ ...record, totals: null });
  expect(record.totals).toMatchObject(counted);
}

/** Checks that everyone is as the EHR said last. All imports must have ended. */
export async function checkEnd(world: World, history: History): Promise<void> {
  await checkAlways(world, history);
  const imports = await Promise.all(history.imports.map((sent) => read(world, sent)));
  expect(
    imports
      .map(({ state, finishedAt }) => [state, finishedAt === null])
      .filter(([state, isOpen]) => isOpen || !['completed', 'cancelled'].includes(String(state))),
  ).toEqual([]);
  const known = await world.sql<{ key: Key }>(`SELECT DISTINCT kind || '/' || external_id AS key FROM (
    SELECT kind, external_id FROM people UNION SELECT kind, external_id FROM import_rows) AS one WHERE external_id IS NOT NULL AND kind IS NOT NULL`);
  const present = new Map<Key, Profile>();
  const keys = new Set<Key>([...known.map(({ key }) => key), ...history.said.map(({ key }) => key)]);
  for (const sent of imports) checkNamed(sent);
  for (const { id, rows } of imports) {
    const failed = rows.filter(({ code }) => code === 'apply-failed').map(({ file, line }) => `${id} ${file} ${line}`);
    expect(failed.filter((row) => !history.damaged.has(row))).toEqual([]);
  }
  for (const sent of imports) checkRejected(sent, (provider) => statements(history, imports, provider));
  for (const key of keys) {
    const last = statements(history, imports, key).at(-1)?.profile;
    if (last) present.set(key, last);
  }
  const sharesEmail = (key: Key) =>
    [...present].some(([other, { email }]) => other !== key && email !== null && email === present.get(key)?.email);
  for (const key of keys) {
    const all = statements(history, imports, key);
    const last = all.at(-1);
    const { state, ...person } = await shown(world, key);
    const users = world.platform.usersOf(idOf(key)).length;
    const rows = imports.flatMap(({ id, mode, state, openedAt, appliedAt, rows: own }) =>
      own
        .filter((row) => names(row, key))
        .map(
          (row) =>
            `${id.slice(0, 4)} ${mode} ${state} opened ${openedAt.toISOString()} applied ${appliedAt?.toISOString()}: ${JSON.stringify(row)}`,
        ),
    );
    const story = {
      key,
      rows,
      all: all.map(({ at, by, profile }) => [at.toISOString(), by, profile && JSON.stringify(profile)]),
    };
    const absences = all.filter(({ profile }) => profile === null).length;
    const did = (what: 'add' | 'remove') =>
      history.users.filter((user) => user.did === what && user.id === idOf(key)).length;
    expect({ ...story, added: did('add') <= absences + 1, removed: did('remove') <= absences }).toEqual({
      ...story,
      added: true,
      removed: true,
    });
    // A cut gave the email of one person to another.
    const isTaken = person.code === 'email-taken' && sharesEmail(key);
    const outcome = isTaken
      ? { state: 'needs-review', code: 'email-taken', users: 0 }
      : { state: 'synced', code: null, users: 1 };
    // In an upsert, a client whose providers are all unknown keeps those that it has.
    if (last?.profile?.providers.length === 0) last.profile.providers = person.profile?.providers ?? [];
    const isUnknown = history.hasFaults && state === 'needs-review' && !last?.profile?.email;
    if (isUnknown) continue;
    const wanted = last?.profile ? { ...outcome, profile: last.profile } : { state: 'absent', users: 0 };
    expect({ ...story, state, ...person, users }).toEqual({ ...story, ...wanted });
  }
}

/** A snapshot deletes no one that it names, and no one at all while a row names no one. */
function checkNamed({ file, rows }: Ended): void {
  const named = new Set(statementsIn(file).keys());
  const deleted = rows
    .filter((row) => row.file === 0)
    .map(({ kind, externalId }): Key => `${kind as PersonKind}/${externalId}`);
  const isUnclear = rows.some(({ outcome, externalId }) => outcome === 'rejected' && externalId === null);
  expect(deleted.filter((key) => isUnclear || named.has(key))).toEqual([]);
}

/** No row is rejected because of providers who were always there. */
function checkRejected({ file, openedAt, rows }: Ended, statementsOf: (provider: Key) => Counted[]): void {
  if (file.kind !== 'clients') return;
  const [columns = [], ...lines] = file.text.split('\n').map((line) => line.split(','));
  const wasThere = (id: string) => {
    const all = statementsOf(`provider/${id}`);
    return all.some(({ at, by }) => by === 'PUT' && at < openedAt) && all.every(({ profile }) => profile !== null);
  };
  const wrong = rows.filter(({ code, line }) => {
    const named = (lines[line - 2]?.[columns.indexOf('providers')] ?? '').split('|');
    return code === 'unknown-provider' && named.filter(Boolean).every(wasThere);
  });
  expect(wrong).toEqual([]);
}
