import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Feed } from '../../feed/feed.js';
import type { FeedType } from '../../feed/feed-event.js';
import { nextStep, type Step } from '../model/next-step.js';
import type { Person, PersonKind, PersonState } from '../model/person.js';
import { toColumns } from '../model/person-columns.js';
import { type PersonRow, type RawPerson, SELECT_PERSON, toPersonRow } from '../model/person-row.js';
import { ProfileSeal } from '../model/profile.js';
import { DependentsRepository } from './dependents.repository.js';

/** The states that the EHR is told of. */
const NEWS: Partial<Record<PersonState, FeedType>> = {
  synced: 'person.synced',
  'needs-review': 'person.needs-review',
  deleted: 'person.deleted',
};

/** People as rows: loading what a decision needs, storing what follows from it. SQL, because its exact words matter. */
@Injectable()
export class PeopleRepository {
  constructor(
    private readonly dependents: DependentsRepository,
    private readonly feed: Feed,
    private readonly seal: ProfileSeal,
  ) {}

  /**
   * Locks a person for the rest of the transaction, also against those who only name it: the mapping to a user of the
   * platform is a key, and a stronger lock later than a weaker one is how transactions deadlock.
   */
  async lock(tx: PoolClient, id: string): Promise<PersonRow | undefined> {
    await tx.query('SELECT 1 FROM people WHERE id = $1 FOR UPDATE', [id]);
    return this.load(tx, id);
  }

  async load(tx: Pick<PoolClient, 'query'>, id: string): Promise<PersonRow | undefined> {
    const { rows } = await tx.query<RawPerson>(`${SELECT_PERSON} WHERE p.id = $1`, [id]);
    return rows[0] ? toPersonRow(rows[0]) : undefined;
  }

  /** Loads people in the order of their ids as given. */
  async loadMany(tx: Pick<PoolClient, 'query'>, ids: string[]): Promise<PersonRow[]> {
    const { rows } = await tx.query(
      `${SELECT_PERSON} WHERE p.id = ANY($1::uuid[]) ORDER BY array_position($1::uuid[], p.id)`,
      [ids],
    );
    return rows.map(toPersonRow);
  }

  /** Finds a person by its identity in the EHR; locks it when asked to. */
  async find(
    tx: Pick<PoolClient, 'query'>,
    kind: PersonKind,
    externalId: string,
    lock = false,
  ): Promise<PersonRow | undefined> {
    const { rows } = await tx.query<{ id: string }>(
      `SELECT id FROM people WHERE kind = $1 AND external_id = $2 ${lock ? 'FOR UPDATE' : ''}`,
      [kind, externalId],
    );
    return rows[0] ? this.load(tx, rows[0].id) : undefined;
  }

  /** Finds who is mapped to a user of the platform, and locks it. */
  async findByUser(tx: PoolClient, platformUserId: string): Promise<PersonRow | undefined> {
    const { rows } = await tx.query<{ id: string }>('SELECT id FROM people WHERE platform_user_id = $1 FOR UPDATE', [
      platformUserId,
    ]);
    return rows[0] && this.load(tx, rows[0].id);
  }

  /** Stores what is known of a person; the wanted side is never written here. */
  async saveKnown(tx: PoolClient, row: PersonRow, person: Person): Promise<void> {
    const columns = Object.entries(toColumns(person, row.listed));
    const names = columns.map(([name], at) => `${name} = $${at + 3}`);
    await tx.query(
      `UPDATE people SET ${names}, attempt_profile = CASE WHEN $2::bigint IS NULL THEN NULL
         WHEN $2 IS DISTINCT FROM attempt_call_id THEN profile ELSE attempt_profile END
       WHERE id = $1`,
      [row.id, person.attempt?.callId ?? null, ...columns.map(([, value]) => value)],
    );
  }

  /**
   * Asks for the next step, takes the email's claim when that is the step, and stores what follows: state, step, when
   * to look again. Wakes whoever depended on what changed.
   *
   * @returns the step that remains: a call or a rest
   */
  async decide(tx: PoolClient, row: PersonRow): Promise<Exclude<Step, { do: 'claim' }>> {
    let step = nextStep(row.person, row.around);
    if (step.do === 'claim') {
      const held = await this.claim(tx, row);
      step = nextStep(row.person, { ...row.around, claim: held ? 'held' : 'taken' });
      if (step.do === 'claim') throw new Error('An email claim was neither held nor taken.');
    }
    await this.storeStep(tx, row, step);
    return step;
  }

  /** Loads a person anew and decides. @returns the person as it stands then */
  async redecide(tx: PoolClient, id: string): Promise<PersonRow> {
    await tx.query('SELECT 1 FROM people WHERE id = $1 FOR NO KEY UPDATE', [id]);
    const row = await this.load(tx, id);
    if (!row) throw new Error('A person vanished while it was being changed.');
    await this.decide(tx, row);
    return row;
  }

  private async storeStep(tx: PoolClient, row: PersonRow, step: Exclude<Step, { do: 'claim' }>): Promise<void> {
    const isCall = step.do === 'call';
    const dueAt = isCall ? (step.notBefore ?? row.around.now) : step.until;
    const rested = !isCall && step.until === null;
    // Whoever began goes on before others begin: else a long import's checks would be stale when its creates come.
    const keepsPlace = isCall && step.notBefore === null;
    await tx.query(
      `UPDATE people SET state = $2::person_state, step = $3,
         due_at = CASE WHEN $7::boolean THEN least(due_at, $4) ELSE $4 END,
         error_code = CASE WHEN $6::boolean THEN $5::text ELSE coalesce($5::text, error_code,
           (SELECT code FROM circuits WHERE operation = $3 AND opened_at IS NOT NULL)) END,
         error_text = CASE WHEN $2::person_state IN ('synced', 'waiting', 'deleted') THEN NULL ELSE error_text END,
         lane = CASE WHEN $6::boolean AND $2::person_state <> 'waiting' THEN 'bulk' ELSE lane END,
         updated_at = CASE WHEN state IS DISTINCT FROM $2::person_state THEN clock_timestamp() ELSE updated_at END
       WHERE id = $1`,
      [row.id, step.state, isCall ? step.operation : null, dueAt, isCall ? null : step.code, rested, keepsPlace],
    );
    if (step.state === 'deleted') await this.forget(tx, row);
    else if (row.hasStrayClaims)
      await this.releaseClaims(tx, row.id, [row.person.email, row.person.attempt?.email ?? null]);
    if (row.kind === 'client') await this.dependents.deletedProviders(tx, row.listed);
    if (row.state !== step.state) await this.tell(tx, row, step);
    row.state = step.state;
  }

  /** What is known of somebody by name goes with the deletion; the external id stays, and with it the way to sessions. */
  private async forget(tx: PoolClient, row: PersonRow): Promise<void> {
    await this.releaseClaims(tx, row.id);
    const nobody = { email: null, firstName: '', lastName: '' };
    await tx.query(
      `UPDATE people SET profile = $2, profile_hash = $3, email_fingerprint = NULL, applied_profile = NULL,
         applied_hash = NULL, attempt_profile = NULL, invite_url = NULL, error_text = NULL WHERE id = $1`,
      [row.id, this.seal.seal(row, nobody), this.seal.hash(nobody)],
    );
  }

  private async tell(tx: PoolClient, row: PersonRow, step: Exclude<Step, { do: 'claim' }>): Promise<void> {
    const type = NEWS[step.state];
    if (!type) return;
    const data = { kind: row.kind, externalId: row.externalId, platformUserId: row.person.platformUserId };
    const code = step.do === 'rest' ? step.code : null;
    await this.feed.append(tx, {
      type,
      subject: `${row.kind}s/${encodeURIComponent(row.externalId)}`,
      data: { ...data, code },
    });
  }

  private async claim(tx: PoolClient, row: PersonRow): Promise<boolean> {
    await this.releaseClaims(tx, row.id, [row.person.email, row.person.attempt?.email ?? null]);
    const { rows } = await tx.query<{ person_id: string }>(
      `INSERT INTO email_claims (fingerprint, person_id) VALUES (decode($1, 'hex'), $2)
       ON CONFLICT (fingerprint) DO UPDATE SET fingerprint = excluded.fingerprint RETURNING person_id`,
      [row.person.email, row.id],
    );
    return rows[0]?.person_id === row.id;
  }

  /** Gives up a person's claims but those to keep, and wakes who waited for them. */
  async releaseClaims(tx: PoolClient, id: string, keep: (string | null)[] = []): Promise<void> {
    await tx.query(
      `WITH released AS (
         DELETE FROM email_claims WHERE person_id = $1 AND NOT encode(fingerprint, 'hex') = ANY($2::text[]) RETURNING fingerprint)
       UPDATE people SET due_at = clock_timestamp(), step = NULL
       WHERE email_fingerprint = ANY (ARRAY(SELECT fingerprint FROM released)) AND id <> $1 AND error_code = 'email-taken'`,
      [id, keep.filter((fingerprint) => fingerprint !== null)],
    );
  }

  /** Whether another person is mapped to this user of the platform. */
  async isHeldByAnother(tx: PoolClient, id: string, platformUserId: string): Promise<boolean> {
    const { rowCount } = await tx.query('SELECT 1 FROM people WHERE platform_user_id = $1 AND id <> $2', [
      platformUserId,
      id,
    ]);
    return rowCount !== 0;
  }
}
