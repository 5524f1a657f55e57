import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PERSON_COLUMNS } from '../../database/columns.js';
import { Database, prepared } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import { type FeedType } from '../../feed/feed-types.js';
import { breakerOf } from '../model/circuit-breaker.js';
import { isCreate, isRestoredUnknown, nextStep, queueOf, type Step } from '../model/next-step.js';
import { becameAssignable, type Person, type PersonState } from '../model/person.js';
import { type PersonKey, type Profile, ProfileSeal } from '../model/profile.js';
import { BreakersRepository } from './breakers.repository.js';
import { ClientData } from './client-data.js';
import { DependentsRepository } from './dependents.repository.js';
import { conditionOf, PeopleReader, type PersonFilter } from './people-reader.repository.js';
import { type PersonRow, RESET_ASSIGNMENTS, RESTORED_ATTEMPT, type StoredPerson, toFields } from './person-row.js';
import { UpcomingPeople } from './upcoming-people.js';

/** The states that the feed announces, with the types of their events. */
const ANNOUNCED: Partial<Record<PersonState, FeedType>> = {
  synced: 'person.synced',
  'needs-review': 'person.needs-review',
  deleted: 'person.deleted',
};

/** The fields that may contain names or an email, as a deletion leaves them. */
const ERASED = {
  profile: null,
  profileHash: null,
  emailFingerprint: null,
  appliedProfile: null,
  inviteUrl: null,
} as const;

/** Other fields that are stored with a decision. */
export type MoreFields = Partial<StoredPerson>;

/** Fields stored with a link. The profile on the platform is known only if a lost create created the user. */
export function linkedFields({ person: { attempt }, attemptProfile }: PersonRow): MoreFields {
  return { appliedProfile: attempt && isCreate(attempt) ? attemptProfile : null };
}

/** SQL condition: a write leaves the email of person `p` as it is. The fingerprints by all accepted keys are $7. */
const HAS_SAME_EMAIL =
  '(p.email_fingerprint IS NOT DISTINCT FROM excluded.email_fingerprint OR p.email_fingerprint = ANY ($7::bytea[]))';

/** SQL assignments for a write by the EHR. They move the person ahead of all imports. */
const ON_WRITE = `lane = 'interactive', wanted_at = clock_timestamp(), stated_at = clock_timestamp(), ${RESET_ASSIGNMENTS}`;

/** SQL assignments for a deletion that was stated before, and deferred. */
export const ON_RELEASE = `lane = 'interactive', wanted_at = clock_timestamp(), ${RESET_ASSIGNMENTS}`;

/** The next step after the email was claimed or found taken, and the code shown with it. */
interface Decision {
  step: Exclude<Step, { do: 'claim-email' }>;
  code: string | null;
}

/** Reads and writes people: the desired state, the known state, and the next step. */
@Injectable()
export class PeopleRepository extends PeopleReader {
  constructor(
    database: Database,
    private readonly prisma: PrismaService,
    breakers: BreakersRepository,
    private readonly dependents: DependentsRepository,
    private readonly data: ClientData,
    private readonly upcoming: UpcomingPeople,
    private readonly feed: Feed,
    private readonly seal: ProfileSeal,
  ) {
    super(database, breakers);
  }

  /**
   * Locks a person for the rest of the transaction, even against transactions that only reference it. A weaker lock
   * would be upgraded when the platform user, which is a key, changes, and such upgrades cause deadlocks. If an import
   * has not started the person yet, it does now.
   */
  async lock(tx: PoolClient, where: PersonFilter): Promise<PersonRow | undefined> {
    if (where.kind && where.externalId) await this.upcoming.start(tx, where.kind, [where.externalId]);
    const { condition, values } = conditionOf(where);
    const lock = prepared(`SELECT id FROM people p WHERE ${condition} FOR UPDATE`, values);
    const { rows } = await tx.query<{ id: string }>(lock);
    // Reads again, because a mapping may have changed before the lock.
    return rows[0] && this.find({ ...where, id: rows[0].id }, tx);
  }

  /** Locks a person that must exist. */
  async mustLock(tx: PoolClient, id: string): Promise<PersonRow> {
    const row = await this.lock(tx, { id });
    if (!row) throw new Error('A person vanished while it was being changed.');
    return row;
  }

  /** Creates or changes a person in the desired state. A new email ends a review. @param id defaults to the stored one */
  async wantPerson(tx: PoolClient, key: PersonKey, profile: Profile, id?: string): Promise<string> {
    const { kind, externalId } = key;
    if (!id) await this.upcoming.start(tx, kind, [externalId]);
    // Locked, so that no rename in between leaves the id to a person with another external id.
    const lock = 'SELECT id FROM people WHERE kind = $1 AND external_id = $2 FOR UPDATE';
    const known = id ?? (await tx.query<{ id: string }>(lock, [kind, externalId])).rows[0]?.id ?? randomUUID();
    const { rows } = await tx.query<{ id: string }>(
      `INSERT INTO people AS p (id, kind, external_id, profile, profile_hash, email_fingerprint, lane)
       VALUES ($1, $2, $3, $4, $5, $6, 'interactive')
       ON CONFLICT (kind, external_id) DO UPDATE SET ${ON_WRITE}, wanted = true, profile = excluded.profile,
         profile_hash = excluded.profile_hash,
         email_fingerprint = CASE WHEN ${HAS_SAME_EMAIL} THEN p.email_fingerprint ELSE excluded.email_fingerprint END,
         review = CASE WHEN ${HAS_SAME_EMAIL} THEN p.review END,
         checked_absent_at = CASE WHEN ${HAS_SAME_EMAIL} THEN p.checked_absent_at END
       RETURNING id`,
      [
        known,
        kind,
        externalId,
        this.seal.seal({ id: known }, profile),
        this.seal.hash(profile),
        this.seal.emailFingerprint(profile.email),
        profile.email === null ? [] : this.seal.emailFingerprints(profile.email),
      ],
    );
    const [stored] = rows as [{ id: string }];
    // A concurrent request may have created the person, with another id.
    return stored.id === known ? known : this.wantPerson(tx, key, profile, stored.id);
  }

  /**
   * Deletes a person in the desired state. Erases names, email and all copies immediately, unless a legal hold keeps them.
   *
   * @param assignments SQL assignments for the source and the urgency of the deletion
   */
  async wantAbsence(tx: PoolClient, row: PersonRow, assignments = ON_WRITE): Promise<void> {
    const { id, heldAt } = row;
    const attempt = isRestoredUnknown(row.person, row.context) ? `, ${RESTORED_ATTEMPT}` : '';
    const text = `UPDATE people SET ${assignments}${attempt}, wanted = false, review = NULL, checked_absent_at = NULL WHERE id = $1`;
    await tx.query(text, [id]);
    if (heldAt !== null) return;
    await tx.query(
      `UPDATE people SET profile = NULL, profile_hash = NULL, email_fingerprint = NULL, applied_profile = NULL,
         attempt_profile = $2, invite_url = NULL, error_text = NULL WHERE id = $1`,
      [id, this.lookupProfile(row)],
    );
    await this.data.erase(await this.prisma.in(tx), row, { names: row.profile !== null });
  }

  /** Reduces the profile of an open create to its email, which the lookup of its user needs. */
  private lookupProfile(row: PersonRow): Buffer | null {
    if (!row.attemptProfile || row.person.attempt?.email == null) return null;
    const { email } = this.seal.open(row, row.attemptProfile);
    return this.seal.seal(row, { email, firstName: '', lastName: '' });
  }

  /** Replaces a client's desired list. @param providerIds in order, primary first */
  async wantProviders(tx: PoolClient, clientId: string, providerIds: string[]): Promise<void> {
    const { clientProvider } = await this.prisma.in(tx);
    await clientProvider.deleteMany({ where: { clientId } });
    const data = providerIds.map((providerId, position) => ({ clientId, providerId, position }));
    await clientProvider.createMany({ data });
  }

  /**
   * Finds providers by their external ids, and prevents their deletion until the transaction ends. The lock allows other
   * such locks and every change except a deletion, which locks for update.
   *
   * @returns ids by external id
   */
  async nameProviders(tx: PoolClient, externalIds: string[]): Promise<Map<string, string>> {
    await this.upcoming.start(tx, 'provider', externalIds);
    const { rows } = await tx.query<{ id: string; external_id: string }>(
      `SELECT id, external_id FROM people
       WHERE kind = 'provider' AND external_id = ANY($1) AND wanted ORDER BY id FOR KEY SHARE`,
      [externalIds],
    );
    return new Map(rows.map((row) => [row.external_id, row.id]));
  }

  /** Decides the next step of a locked person and stores both. @param person the new known state */
  async update(tx: PoolClient, row: PersonRow, person: Person, more?: MoreFields): Promise<Decision> {
    const decision = await this.decide(tx, row, person);
    await this.save(tx, row, person, decision, more);
    return decision;
  }

  /**
   * Decides the next step, claiming the email if needed, and updates others: releases claims, requeues dependents, and
   * announces a new state. Does not store the person, which `save` does.
   *
   * @param person the new known state; `row` has the loaded one
   */
  async decide(tx: PoolClient, row: PersonRow, person: Person): Promise<Decision> {
    const { id, kind } = row;
    let step = nextStep(person, row.context);
    if (step.do === 'claim-email') {
      await this.dependents.releaseClaims(await this.prisma.in(tx), id, neededClaims(person));
      const isHeld = await this.dependents.claimEmail(await this.prisma.in(tx), row, person);
      step = nextStep(person, { ...row.context, claim: isHeld ? 'held' : 'taken' });
      if (step.do === 'claim-email') throw new Error('An email claim was neither held nor taken.');
    }
    const isMoved = row.state !== step.state;
    const kept = step.state === 'deleted' ? [] : neededClaims(person);
    const isStray = row.emailClaims.some((email) => !kept.includes(email));
    if (isStray && (person.platformUserId === null || step.state === 'deleted')) {
      await this.dependents.releaseClaims(await this.prisma.in(tx), id, kept);
    }
    const { platformUserId, appliedProviders } = row.person;
    const isApplied = person.appliedProviders !== null && person.appliedProviders !== appliedProviders;
    if (kind === 'client' && (isMoved || isApplied || person.platformUserId !== platformUserId)) {
      await this.dependents.requeueDeleting(tx, [...row.appliedProviders, ...(person.appliedProviders ?? [])]);
    }
    if (kind === 'provider' && becameAssignable(row.person, person)) await this.dependents.scheduleClientsOf(tx, id);
    if (isMoved && step.state === 'deleted')
      await this.data.erase(await this.prisma.in(tx), row, { names: row.profile !== null });
    await this.announce(tx, row, person, step);
    if (step.do === 'rest') return { step, code: step.code ?? (step.until && row.errorCode) };
    if (person.refusal?.kind === 'rejected') return { step, code: 'rejected' };
    // A call ends the code of a rest, but keeps the code of the last call.
    const lastCode = row.step === null ? null : row.errorCode;
    return { step, code: lastCode ?? breakerOf(row.context.breakers, step.operation).block?.code ?? null };
  }

  /**
   * Stores the known state of a person with its next step, in one statement. Never writes the desired state, except that
   * a completed deletion empties it.
   *
   * @param lease the new lease of the person, if it is claimed
   * @returns the lease number
   */
  async save(
    tx: PoolClient,
    row: PersonRow,
    person: Person,
    { step, code }: Decision,
    more: MoreFields = {},
    lease?: { owner: string; safeAt: Date },
  ): Promise<number> {
    const { now } = row.context;
    const { kind: _kind, wanted: _wanted, email: _email, ...known } = person;
    const hasNoNextStep = step.do === 'rest' && step.until === null;
    // A person with a call keeps its place, because otherwise the checks of a long import would expire before its creates.
    const isInPlace = step.do === 'call' && step.notBefore === null && row.dueAt !== null && row.dueAt <= now;
    const isEmptied = step.state === 'deleted' || (!person.wanted && row.profile === null);
    const fields: MoreFields = {
      ...toFields(known, row.appliedProviders),
      ...(person.attempt?.callId !== row.person.attempt?.callId && { attemptProfile: person.attempt && row.profile }),
      ...more,
      state: step.state,
      step: step.do === 'call' ? queueOf(step, person) : null,
      errorCode: code,
      ...(!isInPlace && { dueAt: step.do === 'call' ? (step.notBefore ?? now) : step.until }),
      ...(hasNoNextStep && step.state !== 'waiting' && { lane: 'bulk' as const }),
      ...((code === null || ['synced', 'waiting', 'deleted'].includes(step.state)) && { errorText: null }),
      ...(row.state !== step.state && { updatedAt: now }),
      ...(step.state === 'deleted' && { attemptProfile: null }),
      ...(isEmptied && ERASED),
      ...(lease && { leaseOwner: lease.owner, leaseSafeAt: lease.safeAt }),
    };
    const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
    const assignments = entries.map(
      ([field], place) => `${PERSON_COLUMNS[field as keyof StoredPerson]} = $${place + 2}`,
    );
    const update = prepared(
      `UPDATE people SET ${assignments.join(', ')}${lease ? ', lease_no = lease_no + 1' : ''} WHERE id = $1
       RETURNING lease_no AS "leaseNo"`,
      [row.id, ...entries.map(([, value]) => value)],
    );
    const { rows } = await tx.query<{ leaseNo: number }>(update);
    return rows[0]?.leaseNo ?? 0;
  }

  /** True if names and email are erased already, so that a later answer must not restore them. */
  isErased({ person, profile }: PersonRow): boolean {
    return !person.wanted && profile === null;
  }

  /** Announces a new state, and a fault that ends all retries. */
  private async announce(tx: PoolClient, row: PersonRow, person: Person, step: Decision['step']): Promise<void> {
    const isFailed = step.state === 'failed' && person.fault !== row.person.fault && person.fault !== 'ignored';
    const type =
      isFailed && person.fault ? 'person.failed' : row.state === step.state ? undefined : ANNOUNCED[step.state];
    if (!type) return;
    const { kind, externalId } = row;
    const code = step.do === 'rest' ? step.code : null;
    await this.feed.append(await this.prisma.in(tx), {
      type,
      subject: `${kind}s/${encodeURIComponent(externalId)}`,
      data: { kind, externalId, platformUserId: person.platformUserId, code },
    });
  }
}

/** The desired email, and the email that an open create may have sent to the platform. */
function neededClaims({ email, attempt }: Person): string[] {
  return [email, attempt?.email ?? null].filter((fingerprint) => fingerprint !== null);
}
