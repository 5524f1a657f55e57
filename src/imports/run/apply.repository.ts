import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { PersonKind } from '../../people/model/person.js';
import { ProfileSeal } from '../../people/model/profile.js';
import { RESET_ASSIGNMENTS } from '../../people/store/person-row.js';
import { BATCH_BY_KEY } from '../model/imports.repository.js';
import { namesOneOf, rejectFormerIds } from '../plan/plan.repository.js';
import { PROVIDER_IN_USE } from '../plan/snapshot-deletes.repository.js';
import { profilePlace } from '../upload/row-places.js';
import { Batch, IN_BATCH, ofPerson } from './row-batch.js';

/** Providers before the clients who name them, and deleted when none names them any more. */
export const APPLY_PHASES = ['provider', 'client', 'client-delete', 'provider-delete'] as const;
type ApplyPhase = (typeof APPLY_PHASES)[number];

/** Empties what a finished row `r` said of its person, and the snapshot before it: no retry or roll back needs them. */
export const discarding = (isDone: string): string =>
  `profile = CASE WHEN ${isDone} THEN NULL ELSE r.profile END, was = CASE WHEN ${isDone} THEN NULL ELSE r.was END,
   was_profile = CASE WHEN ${isDone} THEN NULL ELSE r.was_profile END`;

/** The phase of a pending row `r`. */
const PHASE = `r.kind::text || CASE WHEN r.planned = 'delete' THEN '-delete' ELSE '' END`;

/** A row `r` that was planned and is not applied yet. */
const TO_APPLY = `r.outcome = 'pending' AND NOT r.applied AND r.planned IS NOT NULL`;

/** A pending row `r` that changes the desired state of its person. */
const CHANGES = `r.planned IN ('create-or-link', 'provider-change', 'attribute-change', 'needs-review')`;

/** Why a row is skipped whose person is not as it was when it was planned. */
const CHANGED = {
  code: 'changed-since-plan',
  field: null as string | null,
  hint: 'This person was changed after the plan was made: retry to plan it anew.',
};
const KEPT = { ...CHANGED, hint: 'This person was changed after the plan was made, and is kept.' };
const GONE = { ...CHANGED, hint: 'This person was taken back after the plan was made: nobody is left to delete.' };
const PROVIDER_GONE = {
  ...CHANGED,
  hint: 'A provider of this client was taken back or deleted after the plan was made: retry to plan it anew.',
};
const IS_CHANGED = ofPerson('p.wanted_at IS DISTINCT FROM r.person_wanted_at');

/** The desired state of a person `p` as `restorePrevious` reads it, beside `was_profile`. */
const SNAPSHOT = `jsonb_build_object('wanted', p.wanted, 'profileHash', encode(p.profile_hash, 'base64'),
  'emailFingerprint', encode(p.email_fingerprint, 'base64'),
  'fault', p.fault, 'review', p.review, 'providers', coalesce((
    SELECT jsonb_agg(cp.provider_id ORDER BY cp.position) FROM client_providers cp WHERE cp.client_id = p.id), '[]'))`;

/** A person as a row wants it. */
interface DesiredPerson {
  id: string;
  kind: PersonKind;
  externalId: string;
  profile: Buffer;
  hash: Buffer;
  fingerprint: Buffer | null;
}

/**
 * Turns the rows of a plan into the desired state of people, a batch at a time: an interactive change waits for a batch
 * and not for the import. People are paused (`paused_by_import`) until all rows are applied, so that the reconciler sees
 * the whole import or nothing of it. Every statement goes by the row numbers and ids of the batch, never by statistics
 * of tables that were filled a moment ago.
 */
@Injectable()
export class ApplyRepository {
  constructor(private readonly seal: ProfileSeal) {}

  /** What is left of an import: phases with rows to apply, whether any are or were applied, and its last row. */
  async left(tx: PoolClient, importId: string): Promise<{ phases: ApplyPhase[]; hasPeople: boolean; lastRow: number }> {
    const { rows } = await tx.query<{ phase: ApplyPhase }>(
      `SELECT DISTINCT ${PHASE} AS phase FROM import_rows r WHERE r.import_id = $1 AND ${TO_APPLY}`,
      [importId],
    );
    await tx.query(BATCH_BY_KEY);
    const begun = await tx.query<{ applied: boolean; lastRow: number }>(
      `SELECT EXISTS (SELECT 1 FROM import_rows WHERE import_id = $1 AND applied) AS applied,
         coalesce(max(row_no), 0) AS "lastRow" FROM import_rows WHERE import_id = $1`,
      [importId],
    );
    const { applied, lastRow } = begun.rows[0] ?? { applied: false, lastRow: 0 };
    const phases = APPLY_PHASES.filter((phase) => rows.some((row) => row.phase === phase));
    return { phases, hasPeople: phases.length > 0 || applied, lastRow };
  }

  /** Applies those of some rows that are still to be applied and belong to a phase. @returns how many there were */
  async apply(tx: PoolClient, importId: string, phase: ApplyPhase, rowNos: readonly number[]): Promise<number> {
    const toApply = `SELECT r.row_no AS "rowNo" FROM import_rows r WHERE ${IN_BATCH} AND ${TO_APPLY} AND ${PHASE} = $3`;
    const rows = await new Batch(tx, importId, rowNos).query<{ rowNo: number }>(toApply, phase);
    const due = new Set(rows.map(({ rowNo }) => rowNo));
    const batch = new Batch(
      tx,
      importId,
      rowNos.filter((rowNo) => due.has(rowNo)),
    );
    if (due.size === 0) return 0;
    const locked = await this.lockPeople(batch);
    await rejectFormerIds(tx, `${IN_BATCH} AND r.outcome = 'pending'`, [importId, batch.rowNos]);
    if (phase === 'client') await this.lockProviders(batch);
    const isDelete = phase.endsWith('-delete');
    if (isDelete) await batch.skip(GONE, `${ofPerson('p.id')} IS NULL`);
    await batch.skip(isDelete ? KEPT : CHANGED, IS_CHANGED);
    await batch.query(
      `UPDATE import_rows r SET was = ${ofPerson(SNAPSHOT)}, was_profile = ${ofPerson('p.profile')}
       WHERE ${IN_BATCH} AND r.outcome = 'pending'`,
    );
    if (isDelete) await this.deletePeople(batch, phase);
    else await this.upsertPeople(batch, locked);
    // A changed name or email of a synced person takes no call: the platform shows no operation for it.
    await batch.query(
      `UPDATE import_rows r SET applied = true, ${discarding(`r.planned = 'attribute-change'`)},
         outcome = CASE WHEN r.planned = 'attribute-change' THEN 'updated' ELSE r.outcome END,
         code = CASE WHEN r.planned = 'attribute-change' THEN 'not-pushable' ELSE r.code END,
         hint = CASE WHEN r.planned = 'attribute-change'
           THEN 'The change is kept here; the platform has no operation that changes a name or an email.' ELSE r.hint END
       WHERE ${IN_BATCH} AND r.outcome = 'pending'`,
    );
    return due.size;
  }

  /** Releases the people of some rows. @returns how many there were */
  async release(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<number> {
    const rows = await new Batch(tx, importId, rowNos).query<{ id: string }>(
      `SELECT r.person_id AS id FROM import_rows r WHERE ${IN_BATCH} AND r.applied AND r.person_id IS NOT NULL`,
    );
    const { rowCount } = await tx.query(
      'UPDATE people SET paused_by_import = NULL WHERE id = ANY ($2::uuid[]) AND paused_by_import = $1',
      [importId, rows.map(({ id }) => id)],
    );
    return rowCount ?? 0;
  }

  /** Pauses the people of those of some rows that are pending; calls under way finish, interactive work goes on. */
  async pause(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<void> {
    // As a condition it would invite the planner to read all open rows, by their index, for those of the batch.
    const rows = await new Batch(tx, importId, rowNos).query<{ id: string; at: string; isOpen: boolean }>(
      `SELECT r.person_id AS id, r.person_wanted_at::text AS at, r.outcome = 'pending' AND r.applied AS "isOpen"
       FROM import_rows r WHERE ${IN_BATCH} AND r.person_id IS NOT NULL`,
    );
    const open = rows.filter(({ isOpen }) => isOpen);
    await tx.query(
      `UPDATE people SET paused_by_import = $1 WHERE id = ANY (ARRAY(
         SELECT p.id FROM unnest($2::uuid[], $3::timestamptz[]) AS desired(id, at)
         JOIN people p ON p.id = desired.id AND p.wanted_at = desired.at
         WHERE p.lane = 'bulk' AND p.paused_by_import IS NULL ORDER BY p.id FOR NO KEY UPDATE OF p))`,
      [importId, open.map(({ id }) => id), open.map(({ at }) => at)],
    );
  }

  private async lockPeople(batch: Batch): Promise<string[]> {
    const rows = await batch.query<{ id: string | null }>(
      `SELECT ${ofPerson('p.id')} AS id FROM import_rows r WHERE ${IN_BATCH}`,
    );
    const lock = 'SELECT id FROM people WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE';
    const locked = await batch.tx.query<{ id: string }>(lock, [rows.map(({ id }) => id)]);
    return locked.rows.map(({ id }) => id);
  }

  /**
   * Keeps the providers whom the clients of a batch name from being deleted until the transaction ends. One may be gone
   * since the plan: its clients' lists would be others than planned, and those are skipped.
   */
  private async lockProviders(batch: Batch): Promise<void> {
    const rows = await batch.query<{ externalId: string }>(
      `SELECT DISTINCT unnest(r.providers) AS "externalId" FROM import_rows r WHERE ${IN_BATCH} AND r.outcome = 'pending'`,
    );
    const named = rows.map(({ externalId }) => externalId);
    const { rows: there } = await batch.tx.query<{ externalId: string }>(
      `SELECT external_id AS "externalId" FROM people
       WHERE kind = 'provider' AND external_id = ANY ($1) AND wanted ORDER BY id FOR SHARE`,
      [named],
    );
    const known = new Set(there.map(({ externalId }) => externalId));
    const gone = named.filter((externalId) => !known.has(externalId));
    if (gone.length > 0) await batch.skip(PROVIDER_GONE, namesOneOf('$6'), gone);
  }

  /**
   * The moments, to the microsecond, are those of the insertions: people go in the order in which they are inserted here,
   * and clients who wait meanwhile come back into it (`DependentsRepository.clientsOf`). Interactive work is not paused,
   * and a person who was added since the others were locked is not touched.
   */
  private async upsertPeople(batch: Batch, locked: string[]): Promise<void> {
    const desired = await this.desiredPeople(batch);
    const column = (name: keyof DesiredPerson) => desired.map((person) => person[name]);
    const { rows } = await batch.tx.query<{ id: string }>(
      `INSERT INTO people AS p (id, kind, external_id, profile, profile_hash, email_fingerprint, lane, state,
         wanted_at, due_at, paused_by_import)
       SELECT n.id, n.kind, n.external_id, n.profile, n.hash, n.fingerprint, 'bulk', 'pending',
         clock_timestamp(), clock_timestamp(), $1
       FROM unnest($3::uuid[], $4::person_kind[], $5::text[], $6::bytea[], $7::bytea[], $8::bytea[]) WITH ORDINALITY
         AS n(id, kind, external_id, profile, hash, fingerprint, place)
       ORDER BY n.place
       ON CONFLICT (kind, external_id) DO UPDATE SET wanted = true, profile = excluded.profile,
         profile_hash = excluded.profile_hash, email_fingerprint = excluded.email_fingerprint,
         ${RESET_ASSIGNMENTS}, wanted_at = excluded.wanted_at,
         lane = CASE WHEN p.due_at IS NULL THEN 'bulk' ELSE p.lane END,
         paused_by_import = CASE WHEN p.due_at IS NULL OR p.lane = 'bulk' THEN excluded.paused_by_import END,
         review = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint THEN NULL ELSE p.review END,
         checked_absent_at = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint
           THEN NULL ELSE p.checked_absent_at END,
         state = 'pending', step = NULL, due_at = excluded.due_at, updated_at = clock_timestamp()
       WHERE p.id = ANY ($2::uuid[])
       RETURNING p.id`,
      [
        batch.importId,
        locked,
        column('id'),
        column('kind'),
        column('externalId'),
        column('profile'),
        column('hash'),
        column('fingerprint'),
      ],
    );
    const ids = rows.map(({ id }) => id);
    const applied = await batch.query<{ id: string; planned: string }>(
      `UPDATE import_rows r SET person_id = ${ofPerson('p.id')}, person_wanted_at = ${ofPerson('p.wanted_at')}
       WHERE ${IN_BATCH} AND r.outcome = 'pending' AND ${ofPerson('p.id = ANY ($3::uuid[])')}
       RETURNING person_id AS id, planned`,
      ids,
    );
    await batch.skip(CHANGED, IS_CHANGED); // people who were added while this batch began
    // Of several new people with one email the plan left one to be created: it gets the email, in whatever order they go.
    await batch.tx.query(
      `WITH people AS MATERIALIZED (
         SELECT id, email_fingerprint, platform_user_id FROM people WHERE id = ANY ($1::uuid[]))
       INSERT INTO email_claims (fingerprint, person_id)
       SELECT email_fingerprint, id FROM people WHERE email_fingerprint IS NOT NULL AND platform_user_id IS NULL
       ON CONFLICT (fingerprint) DO NOTHING`,
      [applied.flatMap(({ id, planned }) => (planned === 'create-or-link' ? [id] : []))],
    );
    await this.replaceLists(batch, ids);
  }

  /** The people that rows of a batch create or change, in its order, each with its profile encrypted for the person. */
  private async desiredPeople(batch: Batch): Promise<DesiredPerson[]> {
    const rows = await batch.query<Omit<DesiredPerson, 'id'> & { rowNo: number; id: string | null }>(
      `SELECT r.row_no AS "rowNo", ${ofPerson('p.id')} AS id, r.kind, r.external_id AS "externalId", r.profile,
         r.profile_hash AS hash, r.email_fingerprint AS fingerprint
       FROM import_rows r WHERE ${IN_BATCH} AND r.outcome = 'pending' AND ${CHANGES}
       ORDER BY array_position($2::int[], r.row_no)`,
    );
    return rows.map(({ rowNo, ...row }) => {
      const id = row.id ?? randomUUID();
      const profile = this.seal.openAt(profilePlace(batch.importId, rowNo), row.profile);
      return { ...row, id, profile: this.seal.seal({ id }, profile) };
    });
  }

  /** Replaces the desired lists; a client whose providers are not synced yet waits at once, as `nextStep` would say. */
  private async replaceLists(batch: Batch, people: string[]): Promise<void> {
    await batch.tx.query('DELETE FROM client_providers WHERE client_id = ANY ($1::uuid[])', [people]);
    await batch.query(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT r.person_id, named.position - 1,
         (SELECT q.id FROM people q WHERE q.kind = 'provider' AND q.external_id = named.external_id)
       FROM import_rows r CROSS JOIN unnest(r.providers) WITH ORDINALITY AS named(external_id, position)
       WHERE ${IN_BATCH} AND r.kind = 'client' AND r.outcome = 'pending' AND ${CHANGES}
       ON CONFLICT (client_id, provider_id) DO NOTHING`,
    );
    await batch.tx.query(
      `WITH clients AS MATERIALIZED (
         SELECT id, kind, email_fingerprint, attempt_look_up_at, review FROM people WHERE id = ANY ($1::uuid[]))
       UPDATE people SET state = 'waiting', error_code = 'provider-not-mirrored', due_at = NULL
       WHERE id = ANY (ARRAY(SELECT p.id FROM clients p WHERE p.kind = 'client' AND p.email_fingerprint IS NULL
         AND p.attempt_look_up_at IS NULL AND p.review IS NULL AND (
           SELECT true FROM client_providers cp JOIN people q ON q.id = cp.provider_id
           WHERE cp.client_id = p.id AND (q.platform_user_id IS NULL OR NOT q.wanted) LIMIT 1)))`,
      [people],
    );
  }

  /** Deletes the locked people of a batch; a provider whom a client still names is kept. */
  private async deletePeople(batch: Batch, phase: ApplyPhase): Promise<void> {
    const isNamed = `(SELECT true FROM client_providers cp JOIN people c ON c.id = cp.client_id
      WHERE cp.provider_id = r.person_id AND c.wanted LIMIT 1)`;
    if (phase === 'provider-delete') await batch.skip(PROVIDER_IN_USE, isNamed);
    const rows = await batch.query<{ id: string; rowNo: number }>(
      `SELECT r.person_id AS id, r.row_no AS "rowNo" FROM import_rows r WHERE ${IN_BATCH} AND r.outcome = 'pending'`,
    );
    await batch.tx.query(
      `UPDATE people p SET wanted = false, ${RESET_ASSIGNMENTS}, review = NULL, checked_absent_at = NULL, wanted_at = clock_timestamp(),
         paused_by_import = CASE WHEN p.due_at IS NULL OR p.lane = 'bulk' THEN $1::uuid END,
         lane = CASE WHEN p.due_at IS NULL THEN 'bulk' ELSE p.lane END, state = 'deleting', step = NULL,
         updated_at = clock_timestamp(), due_at = clock_timestamp() + gone.row_no * interval '1 microsecond'
       FROM unnest($2::uuid[], $3::int[]) AS gone(id, row_no) WHERE p.id = gone.id AND p.id = ANY ($2::uuid[])`,
      [batch.importId, rows.map(({ id }) => id), rows.map(({ rowNo }) => rowNo)],
    );
    const version = ofPerson('p.wanted_at');
    await batch.query(
      `UPDATE import_rows r SET person_wanted_at = ${version} WHERE ${IN_BATCH} AND r.outcome = 'pending'`,
    );
  }
}
