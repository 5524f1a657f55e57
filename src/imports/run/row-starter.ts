import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService } from '../../database/prisma.service.js';
import type { PersonKind } from '../../people/model/person.js';
import { ProfileSeal } from '../../people/model/profile.js';
import { applyLink } from '../../people/model/resolve-rule.js';
import { DependentsRepository } from '../../people/store/dependents.repository.js';
import { linkedFields, PeopleRepository } from '../../people/store/people.repository.js';
import { RESET_ASSIGNMENTS } from '../../people/store/person-row.js';
import { PlatformUsersRepository } from '../../people/store/platform-users.repository.js';
import type { PlannedOutcome } from '../model/import.js';
import { type Rejection, rejection } from '../parse/row/rejection.js';
import { IS_LINKED_BY_EMAIL } from '../plan/guards.repository.js';
import { forget, listAfter, providersOf, rejectFormerIds } from '../plan/row-sql.js';
import { rowPlace } from '../upload/row-places.js';
import { RestoredImports } from './restored-imports.js';

/** SQL condition: row `r` is one of these rows of an import that have not started. */
const IN_BATCH = 'r.import_id = $1 AND r.row_no = ANY ($2::int[])';
const UNSTARTED = `${IN_BATCH} AND r.phase IS NOT NULL`;

/** SQL of the person of a row `r`, as a scalar subquery: the planner knows little of tables that were just filled. */
const ofPerson = (value: string): string =>
  `(SELECT ${value} FROM people p WHERE p.kind = r.kind AND p.external_id = r.external_id)`;

/** A row to start, and what is known of its person now. */
interface Row {
  rowNo: number;
  kind: PersonKind;
  externalId: string;
  planned: PlannedOutcome;
  /** As it was written. */
  platformUserId: string | null;
  profile: Buffer | null;
  /** The person's, before the row. */
  knownFingerprint: Buffer | null;
  /** Null if the row does not change the client's providers. */
  providers: string[] | null;
  personId: string | null;
  isWanted: boolean | null;
  /** The EHR said something later than the upload. */
  isOutdated: boolean | null;
  isDeletedSince: boolean | null;
  /** The platform user of the person. */
  mappedUserId: string | null;
  /** A call of the person may still make a user. */
  isCallOpen: boolean | null;
  /** Clients name this provider. */
  isNamed: boolean;
}

/** A person as a row wants it. */
interface DesiredPerson extends Row {
  id: string;
  sealed: Buffer;
  email: string | null;
  hash: Buffer;
  fingerprint: Buffer | null;
}

/**
 * Starts rows of a plan: their people become desired. Locks rows, then people in the order of their ids. A row whose
 * person the EHR has changed since the upload began is skipped.
 */
@Injectable()
export class RowStarter {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly dependents: DependentsRepository,
    private readonly users: PlatformUsersRepository,
    private readonly seal: ProfileSeal,
    private readonly restored: RestoredImports,
  ) {}

  /** @returns the number of rows that have started or were skipped */
  async start(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<number> {
    const locked = await tx.query<{ rowNo: number }>(
      `SELECT r.row_no AS "rowNo" FROM import_rows r WHERE ${UNSTARTED} ORDER BY r.row_no FOR NO KEY UPDATE`,
      [importId, rowNos],
    );
    const batch = locked.rows.map(({ rowNo }) => rowNo);
    if (batch.length === 0) return 0;
    await this.lockPeople(tx, importId, batch);
    await rejectFormerIds(tx, UNSTARTED, [importId, batch]);
    const startable: Row[] = [];
    const gone = await this.goneProviders(tx, importId, batch);
    for (const row of await this.read(tx, importId, batch)) {
      const reason = (await this.linkFault(tx, row)) ?? skipReason(row, gone);
      if (reason) await this.skip(tx, importId, row, reason);
      else startable.push(row);
    }
    const isDelete = ({ planned }: Row) => planned === 'delete';
    for (const row of startable.filter(isDelete)) await this.wantAbsence(tx, importId, row);
    await this.wantPeople(
      tx,
      importId,
      startable.filter((row) => !isDelete(row)),
    );
    await this.markStarted(tx, importId, startable);
    return batch.length;
  }

  private async lockPeople(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<void> {
    const { rows } = await tx.query<{ id: string | null }>(
      `SELECT ${ofPerson('p.id')} AS id FROM import_rows r WHERE ${IN_BATCH}`,
      [importId, rowNos],
    );
    const lock = 'SELECT FROM people WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE';
    await tx.query(lock, [rows.map(({ id }) => id)]);
  }

  private async read(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<Row[]> {
    const { rows } = await tx.query<Row>(
      `SELECT r.row_no AS "rowNo", r.kind, r.external_id AS "externalId", r.planned, r.platform_user_id AS "platformUserId",
         r.profile, ${ofPerson('p.email_fingerprint')} AS "knownFingerprint",
         CASE WHEN r.providers IS NOT NULL THEN ${listAfter(ofPerson(providersOf('p.id')))} END AS providers,
         ${ofPerson('p.id')} AS "personId", ${ofPerson('p.wanted')} AS "isWanted",
         ${ofPerson('p.stated_at > i.opened_at')} AS "isOutdated",
         (SELECT d.deleted_at > i.opened_at FROM deleted_ids d WHERE d.kind = r.kind AND d.external_id = r.external_id) AS "isDeletedSince",
         ${ofPerson('p.platform_user_id')} AS "mappedUserId",
         ${ofPerson(`p.attempt_call_id IS NOT NULL AND p.state NOT IN ('needs-review', 'failed')`)} AS "isCallOpen",
         r.planned = 'delete' AND EXISTS (SELECT FROM client_providers cp JOIN people c ON c.id = cp.client_id
           WHERE cp.provider_id = ${ofPerson('p.id')} AND c.wanted) AS "isNamed"
       FROM import_rows r JOIN imports i ON i.id = r.import_id WHERE ${UNSTARTED} ORDER BY r.row_no`,
      [importId, rowNos],
    );
    return rows;
  }

  /** Providers named by these rows that no longer exist. Locks the others, so that they stay until the commit. */
  private async goneProviders(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<Set<string>> {
    const named = await tx.query<{ id: string }>(
      `SELECT DISTINCT unnest(r.providers) AS id FROM import_rows r WHERE ${UNSTARTED} AND r.kind = 'client'`,
      [importId, rowNos],
    );
    if (named.rows.length === 0) return new Set();
    const { rows } = await tx.query<{ id: string }>(
      `SELECT external_id AS id FROM people
       WHERE kind = 'provider' AND external_id = ANY ($1::text[]) AND wanted ORDER BY id FOR KEY SHARE`,
      [named.rows.map(({ id }) => id)],
    );
    const known = new Set(rows.map(({ id }) => id));
    return new Set(named.rows.flatMap(({ id }) => (known.has(id) ? [] : [id])));
  }

  /** Why a row cannot be linked to its platform user by now. */
  private async linkFault(tx: PoolClient, row: Row): Promise<Rejection | undefined> {
    const { platformUserId } = row;
    if (platformUserId === null) return undefined;
    if (row.mappedUserId === platformUserId) return undefined;
    const field = 'platformUserId';
    if (row.mappedUserId !== null) return rejection('linked-otherwise', { field });
    if (row.isCallOpen) return rejection('call-under-way', { field });
    const { person, formerPerson } = await this.users.describe(platformUserId, tx);
    // The user of a merged client is kept for its survivor.
    const holder = person ?? ((await this.users.isKept(tx, platformUserId)) ? formerPerson : null);
    const isOther = holder && !(holder.kind === row.kind && holder.externalId === row.externalId);
    return isOther ? rejection('platform-user-taken', { field }) : undefined;
  }

  private async skip(
    tx: PoolClient,
    importId: string,
    { rowNo }: Row,
    { code, field, hint }: Rejection,
  ): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', phase = NULL, ${forget()}, code = $3, field = $4, hint = $5 WHERE ${IN_BATCH}`,
      [importId, [rowNo], code, field ?? null, hint],
    );
  }

  /** A confirmed plan covers the deletion of accounts that are linked only by email. */
  private async wantAbsence(tx: PoolClient, importId: string, { rowNo, personId }: Row): Promise<void> {
    const person = await this.people.mustLock(tx, personId as string);
    await tx.query(
      `UPDATE people p SET stated_at = i.opened_at,
         origin = CASE WHEN r.person_wanted_at = p.wanted_at AND ${IS_LINKED_BY_EMAIL} THEN 'resolved' ELSE p.origin END
       FROM import_rows r JOIN imports i ON i.id = r.import_id WHERE ${IN_BATCH} AND p.id = $3`,
      [importId, [rowNo], personId],
    );
    await this.people.wantAbsence(
      tx,
      person,
      `${RESET_ASSIGNMENTS}, wanted_at = clock_timestamp(), lane = CASE WHEN due_at IS NULL THEN 'bulk' ELSE lane END,
       state = 'deleting', step = NULL, due_at = clock_timestamp(), updated_at = clock_timestamp()`,
    );
  }

  /** People start in the order of their rows, and clients that had to wait return to it. */
  private async wantPeople(tx: PoolClient, importId: string, rows: readonly Row[]): Promise<void> {
    const desired = rows.map((row): DesiredPerson => {
      const id = row.personId ?? randomUUID();
      const profile = this.seal.openAt(rowPlace(importId, row.rowNo, 'profile'), row.profile as Buffer);
      const fingerprint = this.seal.emailFingerprint(profile.email, row.knownFingerprint);
      const { email } = profile;
      return { ...row, id, email, fingerprint, sealed: this.seal.seal({ id }, profile), hash: this.seal.hash(profile) };
    });
    const column = (name: keyof DesiredPerson) => desired.map((person) => person[name]);
    await tx.query(
      `INSERT INTO people AS p (id, kind, external_id, profile, profile_hash, email_fingerprint, lane, state, stated_at,
         wanted_at, due_at)
       SELECT n.id, n.kind, n.external_id, n.profile, n.hash, n.fingerprint, 'bulk', 'pending',
         (SELECT opened_at FROM imports WHERE id = $1), clock_timestamp(), clock_timestamp()
       FROM unnest($2::uuid[], $3::person_kind[], $4::text[], $5::bytea[], $6::bytea[], $7::bytea[]) WITH ORDINALITY
         AS n(id, kind, external_id, profile, hash, fingerprint, place)
       ORDER BY n.place
       ON CONFLICT (kind, external_id) DO UPDATE SET wanted = true, profile = excluded.profile,
         profile_hash = excluded.profile_hash, email_fingerprint = excluded.email_fingerprint,
         ${RESET_ASSIGNMENTS}, wanted_at = excluded.wanted_at, stated_at = excluded.stated_at,
         lane = CASE WHEN p.due_at IS NULL THEN 'bulk' ELSE p.lane END,
         review = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint THEN NULL ELSE p.review END,
         checked_absent_at = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint
           THEN NULL ELSE p.checked_absent_at END,
         state = 'pending', step = NULL, due_at = excluded.due_at, updated_at = clock_timestamp()`,
      [
        importId,
        column('id'),
        column('kind'),
        column('externalId'),
        column('sealed'),
        column('hash'),
        column('fingerprint'),
      ],
    );
    await this.claimEmails(tx, desired);
    await this.replaceLists(tx, desired);
    for (const person of desired)
      if (person.platformUserId !== null) await this.link(tx, person, person.platformUserId);
    const ids = desired.map(({ id }) => id);
    await this.restored.keepUnknown(tx, importId, ids);
  }

  /** Of several new people with one email, the plan left one to be created. It gets the email, regardless of who is claimed first. */
  private async claimEmails(tx: PoolClient, desired: readonly DesiredPerson[]): Promise<void> {
    const claiming = desired.flatMap(({ id, planned, email, mappedUserId }) =>
      planned === 'create-or-link' && email !== null && mappedUserId === null
        ? { id, fingerprints: this.seal.emailFingerprints(email) }
        : [],
    );
    if (claiming.length > 0) await this.dependents.claimEmails(await this.prisma.in(tx), claiming);
  }

  private async replaceLists(tx: PoolClient, desired: readonly DesiredPerson[]): Promise<void> {
    const listed = desired.filter(({ kind, providers }) => kind === 'client' && providers !== null);
    await tx.query('DELETE FROM client_providers WHERE client_id = ANY ($1::uuid[])', [listed.map(({ id }) => id)]);
    const items = listed.flatMap(({ id, providers }) =>
      (providers ?? []).map((externalId, position) => ({ id, position, externalId })),
    );
    await tx.query(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT n.client_id, n.position, (SELECT q.id FROM people q WHERE q.kind = 'provider' AND q.external_id = n.external_id)
       FROM unnest($1::uuid[], $2::int[], $3::text[]) AS n(client_id, position, external_id)
       ON CONFLICT (client_id, provider_id) DO NOTHING`,
      [items.map(({ id }) => id), items.map(({ position }) => position), items.map(({ externalId }) => externalId)],
    );
  }

  private async link(tx: PoolClient, { id }: DesiredPerson, platformUserId: string): Promise<void> {
    const person = await this.people.mustLock(tx, id);
    if (person.platformUserId !== null) return;
    await this.people.update(tx, person, applyLink(person.person, platformUserId, 'linked'), linkedFields(person));
  }

  /** The platform has no operation for a changed name or email, so that such a row is finished. */
  private async markStarted(tx: PoolClient, importId: string, rows: readonly Row[]): Promise<void> {
    const { code, hint } = rejection('not-pushable');
    const isChange = `r.planned = 'attribute-change'`;
    await tx.query(
      `UPDATE import_rows r SET phase = NULL, started_at = clock_timestamp(), person_id = ${ofPerson('p.id')},
         person_wanted_at = ${ofPerson('p.wanted_at')},
         outcome = CASE WHEN ${isChange} THEN 'updated' ELSE r.outcome END,
         ${forget(isChange)},
         code = CASE WHEN ${isChange} THEN $3 ELSE r.code END, hint = CASE WHEN ${isChange} THEN $4 ELSE r.hint END
       WHERE ${IN_BATCH}`,
      [importId, rows.map(({ rowNo }) => rowNo), code, hint],
    );
  }
}

/** Why a row is skipped instead of started. */
function skipReason(row: Row, gone: ReadonlySet<string>): Rejection | undefined {
  if (row.isOutdated || row.isDeletedSince) return rejection('changed-since-read');
  if (row.planned === 'delete') {
    if (row.isNamed) return rejection('provider-in-use', { field: 'providers' });
    return row.isWanted ? undefined : rejection('already-deleted');
  }
  if (row.kind === 'client' && row.providers?.some((id) => gone.has(id))) return rejection('provider-gone');
  return undefined;
}
