import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import { Feed, type FeedType } from '../../feed/feed.js';
import type { Prisma } from '../../generated/prisma/client.js';
import { newestOutcomes, UNANSWERED } from '../../platform/rate-limit/rate-limiter.repository.js';
import { isCreate, nextStep, type Step } from '../model/next-step.js';
import { becameListable, type Person, type PersonState } from '../model/person.js';
import { type PersonKey, type Profile, ProfileSeal } from '../model/profile.js';
import { CircuitsRepository } from './circuits.repository.js';
import { DependentsRepository } from './dependents.repository.js';
import { Erasure } from './erasure.js';
import { type Origin, type PersonRow, type Surroundings, storedState, toColumns, toPersonRow } from './person-row.js';

/** The states that the feed announces, with the types of their events. */
const ANNOUNCED: Partial<Record<PersonState, FeedType>> = {
  synced: 'person.synced',
  'needs-review': 'person.needs-review',
  deleted: 'person.deleted',
};

/** Everything besides their own rows that the next steps of people depend on. */
const SURROUNDINGS = `
  SELECT p.id, clock_timestamp() AS now,
    coalesce((SELECT CASE WHEN c.person_id = p.id THEN 'held' ELSE 'taken' END
      FROM email_claims c WHERE c.fingerprint = p.email_fingerprint), 'free') AS claim,
    ARRAY(SELECT encode(c.fingerprint, 'hex') FROM email_claims c WHERE c.person_id = p.id) AS "emailClaims",
    p.kind = 'client' AND p.email_fingerprint IS NULL AND p.platform_user_id IS NULL AND (
      SELECT count(*) = ${UNANSWERED} AND coalesce(bool_and(outcome = 'unknown-outcome'), false)
      FROM ${newestOutcomes('true')}) AS "answersMissing",
    CASE WHEN p.kind = 'client' AND p.email_fingerprint IS NULL AND p.platform_user_id IS NULL THEN (
      SELECT q.profile FROM client_providers cp JOIN people q ON q.id = cp.provider_id
      WHERE cp.client_id = p.id ORDER BY cp.position LIMIT 1) END AS "primaryProfile",
    (SELECT provider_id FROM client_providers WHERE client_id = p.id ORDER BY position LIMIT 1) AS "primaryId",
    CASE WHEN p.kind = 'client' THEN coalesce((
      SELECT json_agg(json_build_object(
          'externalId', q.external_id, 'platformUserId', CASE WHEN q.wanted AND q.attempt_call_id IS NULL THEN q.platform_user_id END) ORDER BY cp.position)
      FROM client_providers cp JOIN people q ON q.id = cp.provider_id WHERE cp.client_id = p.id), '[]') ELSE '[]' END AS providers,
    p.kind = 'provider' AND NOT p.wanted AND p.platform_user_id IS NOT NULL AND EXISTS (
      SELECT 1 FROM people c
      WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.platform_user_id IS NOT NULL
        AND c.state IN ('pending', 'waiting')) AS "stillListed"
  FROM people p WHERE p.id = ANY($1::uuid[])`;

/** A profile without names and email. */
const EMPTIED = { email: null, firstName: '', lastName: '' };

/** Empties the other columns that may contain names or an email. */
const ERASED_COLUMNS = { appliedProfile: null, inviteUrl: null } as const;

/** Other columns that are stored with a decision. */
export type MoreColumns = Prisma.PersonUncheckedUpdateInput;

/** Columns stored with a link. The profile on the platform is known only if a lost create created the user. */
export function linkedColumns({ person: { attempt }, attemptProfile }: PersonRow, origin: Origin): MoreColumns {
  return { origin, appliedProfile: attempt && isCreate(attempt) ? attemptProfile : null };
}

/** SQL assignments for every write by the EHR. They move the person ahead of all imports, even out of a paused one. */
const RESET_ON_WRITE = `lane = 'interactive', paused_by_import = NULL, fault = NULL, retry_at = NULL, failures = 0,
  lost_creates = 0, wanted_at = clock_timestamp()`;

/** The next step after the email was claimed or found taken, and the code shown with it. */
interface Decision {
  step: Exclude<Step, { do: 'claim-email' }>;
  code: string | null;
}

/** Reads and writes people: the desired state, the known state, and the next step. */
@Injectable()
export class PeopleRepository {
  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly circuits: CircuitsRepository,
    private readonly dependents: DependentsRepository,
    private readonly erasure: Erasure,
    private readonly feed: Feed,
    private readonly seal: ProfileSeal,
  ) {}

  async find(where: Prisma.PersonWhereInput, tx?: PoolClient): Promise<PersonRow | undefined> {
    return (await this.list({ where, take: 1 }, tx))[0];
  }

  /**
   * Locks a person for the rest of the transaction, even against transactions that only reference it. A weaker lock
   * would be upgraded when the platform user, which is a key, changes, and such upgrades cause deadlocks.
   */
  async lock(tx: PoolClient, where: Prisma.PersonWhereInput): Promise<PersonRow | undefined> {
    const prisma = await this.prisma.in(tx);
    const found = where.id ? where : await prisma.person.findFirst({ where, select: { id: true } });
    if (!found) return undefined;
    await tx.query('SELECT FROM people WHERE id = $1 FOR UPDATE', [found.id]);
    return this.find({ ...where, id: found.id as string }, tx); // a mapping may have changed before the lock
  }

  /** Locks a person that must exist. */
  async mustLock(tx: PoolClient, id: string): Promise<PersonRow> {
    const row = await this.lock(tx, { id });
    if (!row) throw new Error('A person vanished while it was being changed.');
    return row;
  }

  async list(
    query: Pick<Prisma.PersonFindManyArgs, 'where' | 'orderBy' | 'take'>,
    tx?: PoolClient,
  ): Promise<PersonRow[]> {
    const people = await (tx ? await this.prisma.in(tx) : this.prisma).person.findMany(query);
    if (people.length === 0) return [];
    const ids = people.map(({ id }) => id);
    const { rows } = await (tx ?? this.database.pool).query<Surroundings>(SURROUNDINGS, [ids]);
    const surroundings = new Map(rows.map((row) => [row.id, row]));
    return people.flatMap((stored) => {
      const around = surroundings.get(stored.id);
      return around ? [toPersonRow(stored, around)] : [];
    });
  }

  /** Creates or changes a person in the desired state. A new email ends a review. @param id defaults to the stored one */
  async wantPerson(tx: PoolClient, key: PersonKey, profile: Profile, id?: string): Promise<string> {
    const { kind, externalId } = key;
    const { person } = await this.prisma.in(tx);
    const where = { kind_externalId: { kind, externalId } };
    const known = id ?? (await person.findUnique({ where, select: { id: true } }))?.id ?? randomUUID();
    const { rows } = await tx.query<{ id: string }>(
      `INSERT INTO people AS p (id, kind, external_id, profile, profile_hash, email_fingerprint, lane)
       VALUES ($1, $2, $3, $4, $5, $6, 'interactive')
       ON CONFLICT (kind, external_id) DO UPDATE SET ${RESET_ON_WRITE}, wanted = true, profile = excluded.profile,
         profile_hash = excluded.profile_hash, email_fingerprint = excluded.email_fingerprint,
         review = CASE WHEN p.email_fingerprint IS NOT DISTINCT FROM excluded.email_fingerprint THEN p.review END,
         checked_absent_at = CASE WHEN p.email_fingerprint IS NOT DISTINCT FROM excluded.email_fingerprint
           THEN p.checked_absent_at END
       RETURNING id`,
      [
        known,
        kind,
        externalId,
        this.seal.seal({ id: known }, profile),
        this.seal.hash(profile),
        this.seal.emailFingerprint(profile.email),
      ],
    );
    const [stored] = rows as [{ id: string }];
    // A concurrent request may have created the person, with another id.
    return stored.id === known ? known : this.wantPerson(tx, key, profile, stored.id);
  }

  /** Deletes a person in the desired state. Erases names, email and all copies immediately. */
  async wantAbsence(tx: PoolClient, row: PersonRow): Promise<void> {
    const { profile, profileHash } = this.emptyProfile(row);
    await tx.query(
      `UPDATE people SET ${RESET_ON_WRITE}, wanted = false, review = NULL, checked_absent_at = NULL, profile = $2,
         profile_hash = $3, email_fingerprint = NULL, applied_profile = NULL, attempt_profile = $4,
         invite_url = NULL, error_text = NULL
       WHERE id = $1`,
      [row.id, profile, profileHash, this.lookupProfile(row)],
    );
    await this.erasure.erase(tx, row, { names: !this.isErased(row) });
  }

  /** Reduces the profile of an open create to its email, which the lookup of its user needs. */
  private lookupProfile(row: PersonRow): Buffer | null {
    if (!row.attemptProfile || row.person.attempt?.email == null) return null;
    const { email } = this.seal.open(row, row.attemptProfile);
    return this.seal.seal(row, { ...EMPTIED, email });
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
    const { rows } = await tx.query<{ id: string; external_id: string }>(
      `SELECT id, external_id FROM people
       WHERE kind = 'provider' AND external_id = ANY($1) AND wanted ORDER BY id FOR KEY SHARE`,
      [externalIds],
    );
    return new Map(rows.map((row) => [row.external_id, row.id]));
  }

  /** Decides the next step of a locked person and stores both. @param person the new known state */
  async update(tx: PoolClient, row: PersonRow, person: Person, more?: MoreColumns): Promise<Decision> {
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
      const isHeld = await this.dependents.claimEmail(tx, id, person.email ?? '', neededClaims(person));
      step = nextStep(person, { ...row.context, claim: isHeld ? 'held' : 'taken' });
      if (step.do === 'claim-email') throw new Error('An email claim was neither held nor taken.');
    }
    const isMoved = row.state !== step.state;
    const kept = step.state === 'deleted' ? [] : neededClaims(person);
    const isStray = row.emailClaims.some((email) => !kept.includes(email));
    if (isStray && (person.platformUserId === null || step.state === 'deleted')) {
      await this.dependents.releaseClaims(tx, id, kept);
    }
    const { platformUserId, appliedProviders } = row.person;
    const isApplied = person.appliedProviders !== null && person.appliedProviders !== appliedProviders;
    if (kind === 'client' && (isMoved || isApplied || person.platformUserId !== platformUserId)) {
      await this.dependents.requeueDeleting(tx, [...row.appliedProviders, ...(person.appliedProviders ?? [])]);
    }
    if (kind === 'provider' && becameListable(row.person, person)) await this.dependents.scheduleClientsOf(tx, id);
    if (isMoved && step.state === 'deleted') await this.erasure.erase(tx, row, { names: !this.isErased(row) });
    if (isMoved) await this.announce(tx, row, person, step);
    if (step.do === 'rest') return { step, code: step.code ?? (step.until && row.errorCode) };
    // A call ends the code of a rest, but keeps the code of the last call.
    const lastCode = row.step === null ? null : row.errorCode;
    return { step, code: lastCode ?? (await this.circuits.stopCode(tx, step.operation)) };
  }

  /**
   * Stores the known state of a person with its next step, in one statement. Never writes the desired state, except that
   * a completed deletion empties it.
   *
   * @returns the lease number
   */
  async save(
    tx: PoolClient,
    row: PersonRow,
    person: Person,
    { step, code }: Decision,
    more: MoreColumns = {},
  ): Promise<number> {
    const prisma = await this.prisma.in(tx);
    const { now } = row.context;
    const { kind: _kind, wanted: _wanted, email: _email, ...known } = person;
    const columns = toColumns(known, row.appliedProviders);
    const isAtRest = step.do === 'rest' && step.until === null;
    // A person with a call keeps its place, because otherwise the checks of a long import would expire before its creates.
    const isInPlace = step.do === 'call' && step.notBefore === null && row.dueAt !== null && row.dueAt <= now;
    const data: MoreColumns = {
      ...columns,
      appliedProviders: { set: columns.appliedProviders },
      ...(person.attempt?.callId !== row.person.attempt?.callId && { attemptProfile: person.attempt && row.profile }),
      ...more,
      state: storedState(step.state),
      step: step.do === 'call' ? step.operation : null,
      errorCode: code,
      ...(!isInPlace && { dueAt: step.do === 'call' ? (step.notBefore ?? now) : step.until }),
      ...(isAtRest && step.state !== 'waiting' && { lane: 'bulk', traceparent: null }),
      ...((code === null || ['synced', 'waiting', 'deleted'].includes(step.state)) && { errorText: null }),
      ...(row.state !== step.state && { updatedAt: now }),
      ...(step.state === 'deleted' && { ...this.emptyProfile(row), emailFingerprint: null, attemptProfile: null }),
      ...((step.state === 'deleted' || this.isErased(row)) && ERASED_COLUMNS),
    };
    const { leaseNo } = await prisma.person.update({ where: { id: row.id }, data, select: { leaseNo: true } });
    return leaseNo;
  }

  private emptyProfile(row: PersonRow) {
    return { profile: toBytes(this.seal.seal(row, EMPTIED)), profileHash: toBytes(this.seal.hash(EMPTIED)) };
  }

  /** Whether names and email are erased already, so that a later answer must not restore them. */
  isErased({ person, profileHash }: PersonRow): boolean {
    return !person.wanted && this.seal.hash(EMPTIED).equals(profileHash);
  }

  private async announce(tx: PoolClient, row: PersonRow, person: Person, step: Decision['step']): Promise<void> {
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
}

/** The desired email, and the email that an open create may have sent to the platform. */
function neededClaims({ email, attempt }: Person): string[] {
  return [email, attempt?.email ?? null].filter((fingerprint) => fingerprint !== null);
}
