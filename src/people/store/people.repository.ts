import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Feed } from '../../feed/feed.js';
import type { FeedType } from '../../feed/feed-event.js';
import { take } from '../../queue/due-rows/lease.js';
import { isCreate, nextStep, type Step } from '../model/next-step.js';
import { becameListable, type Person, type PersonState } from '../model/person.js';
import { type PersonRow, SELECT_PERSON, type SelectedPerson, toColumns, toPersonRow } from '../model/person-row.js';
import { type PersonKey, ProfileSeal } from '../model/profile.js';
import { DependentsRepository } from './dependents.repository.js';

/** The states that the feed announces. */
const ANNOUNCED: Partial<Record<PersonState, FeedType>> = {
  synced: 'person.synced',
  'needs-review': 'person.needs-review',
  deleted: 'person.deleted',
};

/** What is stored beside a link: what the platform calls the person is known only if a lost create made the user. */
export function linkedColumns({ person: { attempt }, sealed }: PersonRow, origin: 'resolved' | 'event'): object {
  return { origin, applied_profile: attempt && isCreate(attempt) ? sealed.attemptProfile : null };
}

/** What is stored beside an unlink. */
export const UNLINKED_COLUMNS = { origin: null, applied_profile: null };

/** The step that remains once the email is claimed, or another's. */
type DecidedStep = Exclude<Step, { do: 'claim' }>;

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
    return (await this.loadMany(tx, [id]))[0];
  }

  /** Loads people in the order of their ids as given. */
  async loadMany(tx: Pick<PoolClient, 'query'>, ids: string[]): Promise<PersonRow[]> {
    const { rows } = await tx.query<SelectedPerson>(
      `${SELECT_PERSON} WHERE p.id = ANY($1::uuid[]) ORDER BY array_position($1::uuid[], p.id)`,
      [ids],
    );
    return rows.map(toPersonRow);
  }

  /** Finds a person by its identity in the EHR; locks it when asked to. */
  async find(
    tx: Pick<PoolClient, 'query'>,
    { kind, externalId }: PersonKey,
    lock = false,
  ): Promise<PersonRow | undefined> {
    const { rows } = await tx.query<{ id: string }>(
      `SELECT id FROM people WHERE kind = $1 AND external_id = $2 ${lock ? 'FOR UPDATE' : ''}`,
      [kind, externalId],
    );
    return rows[0] && this.load(tx, rows[0].id);
  }

  /** Finds who is mapped to a user of the platform, and locks it. */
  async findByUser(tx: PoolClient, platformUserId: string): Promise<PersonRow | undefined> {
    const { rows } = await tx.query<{ id: string }>('SELECT id FROM people WHERE platform_user_id = $1 FOR UPDATE', [
      platformUserId,
    ]);
    return rows[0] && this.load(tx, rows[0].id);
  }

  /** Decides on a locked person, and stores it with the step that follows. @param person what is known of it now */
  async update(tx: PoolClient, row: PersonRow, person: Person, columns: object = {}): Promise<DecidedStep> {
    const step = await this.decide(tx, row, person);
    await this.save(tx, row, person, step, columns);
    return step;
  }

  /**
   * Asks for the next step, takes the email's claim when that is the step, and does for others what follows from it:
   * releases claims, requeues who depends on this person, announces its state. The person itself is stored by `save`.
   *
   * @param person what is known now; `row` is as it was loaded
   */
  async decide(tx: PoolClient, row: PersonRow, person: Person): Promise<DecidedStep> {
    let step = nextStep(person, row.context);
    if (step.do === 'claim') {
      const claim = (await this.claimEmail(tx, row.id, person)) ? 'held' : 'taken';
      step = nextStep(person, { ...row.context, claim });
      if (step.do === 'claim') throw new Error('An email claim was neither held nor taken.');
    }
    const isMoved = row.state !== step.state;
    const kept = step.state === 'deleted' ? [] : neededClaims(person);
    const isStray = row.emailClaims.some((email) => !kept.includes(email));
    if (isStray && (person.platformUserId === null || step.state === 'deleted')) {
      await this.releaseClaims(tx, row.id, kept);
    }
    const { platformUserId, appliedProviders } = row.person;
    const isApplied = person.appliedProviders !== null && person.appliedProviders !== appliedProviders;
    if (row.kind === 'client' && (isMoved || isApplied || person.platformUserId !== platformUserId)) {
      await this.dependents.requeueDeleting(tx, [...row.listed, ...(person.appliedProviders ?? [])]);
    }
    if (row.kind === 'provider' && becameListable(row.person, person)) {
      await this.dependents.noteClientsOf(tx, row.id);
    }
    if (isMoved) await this.announce(tx, row, person, step);
    return step;
  }

  /**
   * Stores what is known of a person with the step that was decided, in one statement. What the EHR wants is never
   * written here, but forgotten with a deletion.
   *
   * @param columns more of them, by name
   * @param lease who works on the person from now on, and the milliseconds after which that can take no more effect
   * @returns the number of the lease
   */
  async save(
    tx: PoolClient,
    row: PersonRow,
    person: Person,
    step: DecidedStep,
    columns: object = {},
    lease?: { owner: string; effectMs: number },
  ): Promise<number> {
    const isCall = step.do === 'call';
    const rests = !isCall && step.until === null;
    const code = rests ? step.code : ((isCall ? null : step.code) ?? row.errorCode);
    const stored = {
      ...toColumns(person, row.listed),
      ...(person.attempt?.callId !== row.person.attempt?.callId && {
        attempt_profile: person.attempt && row.sealed.profile,
      }),
      ...columns,
      state: step.state,
      step: isCall ? step.operation : null,
      ...(rests && step.state !== 'waiting' && { lane: 'bulk' }),
      ...(['synced', 'waiting', 'deleted'].includes(step.state) && { error_text: null }),
      ...(row.state !== step.state && { updated_at: row.context.now }),
      ...(step.state === 'deleted' && this.withoutProfile(row)),
    };
    const values: unknown[] = [row.id];
    const param = (value: unknown) => `$${values.push(value)}`;
    const assignments = Object.entries(stored).map(([name, value]) => `${name} = ${param(value)}`);
    const dueAt = param(isCall ? (step.notBefore ?? row.context.now) : step.until);
    // A person with a call to make keeps its place: else a long import's checks would be stale when its creates come.
    assignments.push(`due_at = ${isCall && step.notBefore === null ? `least(due_at, ${dueAt})` : dueAt}`);
    assignments.push(`error_code = coalesce(${param(code)},
      (SELECT code FROM circuits WHERE operation = ${param(isCall ? step.operation : null)} AND opened_at IS NOT NULL))`);
    if (lease) assignments.push(take(param(lease.owner), param(lease.effectMs)));
    const { rows } = await tx.query<{ no: number }>(
      `UPDATE people SET ${assignments} WHERE id = $1 RETURNING lease_no AS no`,
      values,
    );
    return rows[0]?.no ?? 0;
  }

  /** Names and email go with the deletion; the external id stays, and with it the way to sessions. */
  private withoutProfile(row: PersonRow): object {
    const empty = { email: null, firstName: '', lastName: '' };
    return {
      ...{ profile: this.seal.seal(row, empty), profile_hash: this.seal.hash(empty), email_fingerprint: null },
      ...{ applied_profile: null, applied_hash: null, attempt_profile: null, invite_url: null },
    };
  }

  private async announce(tx: PoolClient, row: PersonRow, person: Person, step: DecidedStep): Promise<void> {
    const type = ANNOUNCED[step.state];
    if (!type) return;
    const { kind, externalId } = row;
    const code = step.do === 'rest' ? step.code : null;
    await this.feed.append(tx, {
      type,
      subject: `${kind}s/${encodeURIComponent(externalId)}`,
      data: { kind, externalId, platformUserId: person.platformUserId, code },
    });
  }

  private async claimEmail(tx: PoolClient, id: string, person: Person): Promise<boolean> {
    await this.releaseClaims(tx, id, neededClaims(person));
    const { rows } = await tx.query<{ person_id: string }>(
      `INSERT INTO email_claims (fingerprint, person_id) VALUES (decode($1, 'hex'), $2)
       ON CONFLICT (fingerprint) DO UPDATE SET fingerprint = excluded.fingerprint RETURNING person_id`,
      [person.email, id],
    );
    return rows[0]?.person_id === id;
  }

  /** Releases a person's claims but those to keep, and requeues who waits for them. */
  private async releaseClaims(tx: PoolClient, id: string, kept: string[]): Promise<void> {
    await tx.query(
      `WITH released AS (
         DELETE FROM email_claims WHERE person_id = $1 AND NOT encode(fingerprint, 'hex') = ANY($2::text[]) RETURNING fingerprint)
       UPDATE people SET due_at = clock_timestamp(), step = NULL
       WHERE email_fingerprint = ANY (ARRAY(SELECT fingerprint FROM released)) AND id <> $1 AND error_code = 'email-taken'`,
      [id, kept],
    );
  }
}

/** The email that is wanted, and the one that an open create may have given to the platform. */
function neededClaims({ email, attempt }: Person): string[] {
  return [email, attempt?.email ?? null].filter((fingerprint) => fingerprint !== null);
}
