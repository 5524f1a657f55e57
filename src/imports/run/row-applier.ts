import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { ProfileSeal } from '../../people/rules/profile.js';
import { applyLink } from '../../people/rules/resolve-rule.js';
import { PeopleRepository } from '../../people/store/people.repository.js';
import { rejection } from '../parse/row/rejection.js';
import { IS_LINKED_BY_EMAIL } from '../plan/guards.repository.js';
import { forget } from '../plan/row-sql.js';
import { rowPlace } from '../upload/row-places.js';
import { type Batch, IN_BATCH, ofPerson, RowsToApply, type RowToApply } from './rows-to-apply.repository.js';

/** A person as a row wants it. */
interface DesiredPerson extends RowToApply {
  id: string;
  sealed: Buffer;
  /** It needs its email to be looked up and created. */
  isNew: boolean;
  hash: Buffer;
  fingerprint: Buffer | null;
}

/** SQL assignments that forget the outcomes of earlier calls of person `p`. A call in flight keeps its time. */
const RESET = `fault = NULL, refused_operation = NULL, refused_code = NULL, refused_at = NULL, failures = 0,
  due_at = CASE WHEN p.call_id IS NOT NULL THEN p.due_at END`;

/** SQL condition: person `p` is a provider for whom a client of the EHR waits, and stays before all imports. */
const IS_AWAITED = `(p.urgent AND p.kind = 'provider')`;

/** Someone else created, stated, renamed or merged a person of a batch after its people were locked, so that it has to be read again. */
export class Overtaken extends Error {}

/** Applies rows of a plan: their people become desired, and the feeder of the people's queue finds those that are due. */
@Injectable()
export class RowApplier {
  constructor(
    private readonly prisma: PrismaService,
    private readonly rows: RowsToApply,
    private readonly people: PeopleRepository,
    private readonly seal: ProfileSeal,
  ) {}

  /**
   * Applies a batch in one transaction. A row whose person the EHR has changed since the upload began is skipped.
   *
   * @throws {Overtaken} if the batch has to be applied again
   */
  async apply(batch: Batch): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      const taken = await this.rows.take(tx, batch);
      if (taken.length === 0) return;
      const { importId } = batch;
      const deletions = taken.filter(({ planned }) => planned === 'delete');
      const desired = this.desired(
        importId,
        taken.filter((row) => !deletions.includes(row)),
      );
      if (deletions.length > 0) await this.wantAbsence(tx, importId, deletions);
      if (desired.length > 0) await this.wantPeople(tx, importId, desired);
      // Of several new people with one email, the plan left one to be created, which gets it.
      const inOrder = [...desired.filter(({ isNew }) => isNew), ...desired.filter(({ isNew }) => !isNew)];
      const deleted = deletions.map(({ personId }) => personId as string);
      await this.people.decideAll(tx, [...deleted, ...inOrder.map(({ id }) => id)]);
      await this.wereApplied(this.prisma.sql(tx), importId, taken);
    }, 'bulk');
  }

  /**
   * Wants people deleted. Their names stay until the deletion is sent (`CallsRepository.take`), so that a cancel can take it
   * back. A confirmed plan covers the deletion of accounts that are linked only by email.
   */
  private async wantAbsence(tx: Tx, importId: string, rows: readonly RowToApply[]): Promise<void> {
    const batch = [importId, rows.map(({ rowNo }) => rowNo)];
    const sql = this.prisma.sql(tx);
    await sql.query(
      `UPDATE import_rows r SET replaced = (
         SELECT jsonb_build_object('statedAt', p.stated_at, 'origin', p.origin, 'review', p.review, 'importId', p.import_id, 'urgent', p.urgent) FROM people p
         WHERE p.kind = r.kind AND p.external_id = r.external_id)
       WHERE ${IN_BATCH}`,
      batch,
    );
    await sql.query(
      `UPDATE people p SET wanted = false, wanted_at = clock_timestamp(), wanted_version = p.wanted_version + 1,
         stated_at = i.opened_at, import_id = i.id, new_by_import = NULL, urgent = false, ${RESET},
         review = NULL, checked_absent_at = NULL,
         origin = CASE WHEN r.person_version = p.wanted_version AND ${IS_LINKED_BY_EMAIL} THEN 'resolved' ELSE p.origin END
       FROM import_rows r JOIN imports i ON i.id = r.import_id
       WHERE ${IN_BATCH} AND p.kind = r.kind AND p.external_id = r.external_id`,
      batch,
    );
  }

  private desired(importId: string, rows: readonly RowToApply[]): DesiredPerson[] {
    return rows.map((row) => {
      const id = row.personId ?? randomUUID();
      const profile = this.seal.openAt(rowPlace(importId, row.rowNo, 'profile'), row.profile as Buffer);
      return {
        ...{ ...row, id, sealed: this.seal.seal({ id }, profile), hash: this.seal.hash(profile) },
        fingerprint: this.seal.emailFingerprint(profile.email),
        isNew: row.planned === 'create-or-link' && row.mappedUserId === null,
      };
    });
  }

  private async wantPeople(tx: Tx, importId: string, desired: readonly DesiredPerson[]): Promise<void> {
    const sql = this.prisma.sql(tx);
    const column = (name: keyof DesiredPerson) => desired.map((person) => person[name]);
    const { rowCount } = await sql.query(
      `INSERT INTO people AS p (id, kind, external_id, profile, profile_hash, email_fingerprint, state, import_id, new_by_import,
         stated_at, wanted_at)
       SELECT n.id, n.kind, n.external_id, n.profile, n.hash, n.fingerprint, 'pending', $1, $1, i.opened_at, clock_timestamp()
       FROM imports i, unnest($2::uuid[], $3::person_kind[], $4::text[], $5::bytea[], $6::bytea[], $7::bytea[])
         AS n(id, kind, external_id, profile, hash, fingerprint)
       WHERE i.id = $1 AND NOT EXISTS (SELECT FROM former_ids f WHERE f.kind = n.kind AND f.external_id = n.external_id)
       ON CONFLICT (kind, external_id) DO UPDATE SET wanted = true, profile = excluded.profile,
         profile_hash = excluded.profile_hash, email_fingerprint = excluded.email_fingerprint,
         ${RESET}, new_by_import = NULL,
         wanted_at = excluded.wanted_at, wanted_version = p.wanted_version + 1,
         stated_at = excluded.stated_at,
         import_id = CASE WHEN ${IS_AWAITED} THEN NULL ELSE excluded.import_id END, urgent = ${IS_AWAITED},
         review = CASE WHEN p.email_fingerprint IS NOT DISTINCT FROM excluded.email_fingerprint
           OR p.review = 'restored-unknown' THEN p.review END,
         checked_absent_at = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint
           THEN NULL ELSE p.checked_absent_at END
       WHERE p.id = excluded.id AND p.stated_at <= excluded.stated_at`,
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
    if (rowCount !== desired.length) throw new Overtaken();
    await this.replaceLists(sql, desired);
    for (const { id, platformUserId } of desired) if (platformUserId !== null) await this.link(tx, id, platformUserId);
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

  private async link(tx: Tx, id: string, platformUserId: string): Promise<void> {
    const person = await this.people.mustLock(tx, id);
    if (person.platformUserId !== null) return;
    // The file names the user, so that no email of it is known.
    await this.people.update(tx, person, applyLink(person.person, platformUserId, 'linked'), { appliedProfile: null });
  }

  /** The platform has no operation for a changed name or email, so that such a row is finished. */
  private async wereApplied(tx: PoolClient, importId: string, rows: readonly RowToApply[]): Promise<void> {
    const { code, hint } = rejection('not-pushable');
    const hasUser = ofPerson('p.platform_user_id IS NOT NULL');
    const isChange = `(r.planned = 'attribute-change' AND ${hasUser})`;
    await tx.query(
      `UPDATE import_rows r SET phase = NULL, applied_at = clock_timestamp(), person_id = ${ofPerson('p.id')},
         settled_at = CASE WHEN ${isChange} THEN clock_timestamp() END,
         planned = CASE WHEN r.planned LIKE '%-change' AND NOT ${hasUser} THEN 'create-or-link' ELSE r.planned END,
         outcome = CASE WHEN ${isChange} THEN 'updated' ELSE r.outcome END,
         ${forget(isChange)},
         code = CASE WHEN ${isChange} THEN $3 ELSE r.code END, hint = CASE WHEN ${isChange} THEN $4 ELSE r.hint END
       WHERE ${IN_BATCH}`,
      [importId, rows.map(({ rowNo }) => rowNo), code, hint],
    );
  }
}
