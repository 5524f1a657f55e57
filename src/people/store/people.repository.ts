import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx, toBytes } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import { dueAtOf, nextStep, type Step } from '../rules/next-step.js';
import { becameAssignable, isCreate, type Person, withNextUser } from '../rules/person.js';
import { eventOf } from '../rules/person-event.js';
import type { Profile } from '../rules/person-field-rules.js';
import { type PersonKey, ProfileSeal } from '../rules/profile.js';
import { ClientData } from './client-data.js';
import { DependentsRepository } from './dependents.repository.js';
import { PeopleReader } from './people-reader.repository.js';
import { type PersonRow, type StoredPerson, toFields, toHex } from './person-row.js';
import { PlatformUsersRepository } from './platform-users.repository.js';

/** The fields that may contain names or an email, as a deletion leaves them. */
const ERASED = {
  profile: null,
  profileHash: null,
  emailFingerprint: null,
  appliedProfile: null,
  inviteUrl: null,
} as const;

/** The columns of `RESET_ON_WRITE`. */
const RESET = {
  ...{ fault: null, refusedOperation: null, refusedCode: null, refusedAt: null, failures: 0, dueAt: null },
} as const;

/** A person whom the EHR states outside of imports comes before those of all imports, and no cancel withdraws it. */
export const STATED_BY_EHR = { urgent: true, importId: null, newByImport: null } as const;

/** Other fields of a person. */
export type MoreFields = Partial<StoredPerson>;

/** A person to state. */
type LockedPerson = Pick<StoredPerson, 'id' | 'emailFingerprint'> & { hasProfile: boolean };

/** Reads and writes people: the desired state, the known state, and the next step. */
@Injectable()
export class PeopleRepository extends PeopleReader {
  constructor(
    prisma: PrismaService,
    private readonly dependents: DependentsRepository,
    private readonly users: PlatformUsersRepository,
    private readonly data: ClientData,
    private readonly feed: Feed,
    private readonly seal: ProfileSeal,
  ) {
    super(prisma);
  }

  /**
   * Locks a person, even against transactions that only reference it: a weaker lock would be upgraded when its user, which
   * is a key, changes, and that causes deadlocks. The providers of a client are locked against changes, so that a mapping
   * of one comes before or after the decision.
   */
  async lock(tx: Tx, named: { id: string } | PersonKey): Promise<PersonRow | undefined> {
    const [found] =
      'id' in named
        ? [named]
        : await tx.$queryRaw<{ id: string }[]>`
            SELECT id FROM people WHERE kind = ${named.kind}::person_kind AND external_id = ${named.externalId}
              AND wanted_version > 0 FOR UPDATE`;
    return found && (await this.lockAll(tx, [found.id]))[0];
  }

  /** Locks people like `lock`, in the order of their ids, and then the providers of clients. Reads them in the order of `ids`. */
  async lockAll(tx: Tx, ids: readonly string[]): Promise<PersonRow[]> {
    await tx.$queryRaw`SELECT FROM people WHERE id = ANY (${[...ids]}::uuid[]) ORDER BY id FOR UPDATE`;
    await tx.$queryRaw`
      SELECT FROM client_providers cp JOIN people q ON q.id = cp.provider_id
      WHERE cp.client_id = ANY (${[...ids]}::uuid[]) ORDER BY q.id FOR SHARE OF q`;
    return this.readAll(tx, ids);
  }

  /** Locks a person that must exist. */
  async mustLock(tx: Tx, id: string): Promise<PersonRow> {
    const row = await this.lock(tx, { id });
    if (!row) throw new Error('A person vanished while it was being changed.');
    return row;
  }

  /** Creates or changes a person in the desired state, before all imports. A new email ends a review. @returns its id */
  async wantPerson(tx: Tx, { kind, externalId }: PersonKey, profile: Profile): Promise<string> {
    const { id, ...known } = await this.lockNew(tx, kind, externalId);
    const fingerprint = this.seal.emailFingerprint(profile.email);
    const hasSameEmail = known.hasProfile && toHex(known.emailFingerprint) === toHex(fingerprint);
    await this.state(tx, id, {
      ...{ wanted: true, profile: toBytes(this.seal.seal({ id }, profile)) },
      ...{ profileHash: toBytes(this.seal.hash(profile)), emailFingerprint: fingerprint && toBytes(fingerprint) },
      ...(!hasSameEmail && { review: null, checkedAbsentAt: null }),
    });
    return id;
  }

  /** Creates a person unless it exists, or another request does, and locks it; again if it was renamed or merged meanwhile. */
  private async lockNew(tx: Tx, kind: PersonKey['kind'], externalId: string): Promise<LockedPerson> {
    await tx.$executeRaw`
      INSERT INTO people (id, kind, external_id) VALUES (${randomUUID()}::uuid, ${kind}::person_kind, ${externalId})
      ON CONFLICT (kind, external_id) DO NOTHING`;
    const [locked] = await tx.$queryRaw<LockedPerson[]>`
      SELECT id, profile IS NOT NULL AS "hasProfile", email_fingerprint AS "emailFingerprint"
      FROM people WHERE kind = ${kind}::person_kind AND external_id = ${externalId} FOR UPDATE`;
    return locked ?? this.lockNew(tx, kind, externalId);
  }

  /** Stores what the EHR states now, and forgets the outcomes of earlier calls. `update` then decides the next step. */
  private async state(tx: Tx, id: string, wanted: MoreFields): Promise<void> {
    const data = { ...RESET, ...STATED_BY_EHR, ...wanted, wantedVersion: { increment: 1 } };
    await tx.person.update({ where: { id }, data: data as never });
    await tx.$executeRaw`
      UPDATE people SET wanted_at = clock_timestamp(), stated_at = clock_timestamp() WHERE id = ${id}::uuid`;
  }

  /** Deletes a person in the desired state, before all imports, and erases it. */
  async wantAbsence(tx: Tx, row: PersonRow): Promise<void> {
    await this.state(tx, row.id, { wanted: false, review: null, checkedAbsentAt: null });
    await this.erase(tx, row);
  }

  /** Erases names, email and all copies of a person to delete, unless a legal hold keeps them. */
  async erase(tx: Tx, row: PersonRow): Promise<void> {
    if (row.heldAt !== null) return;
    const subject = await this.data.subjectOf(tx, row);
    const unsettledProfile = this.lookupProfile(row);
    await tx.person.update({ where: { id: row.id }, data: { ...ERASED, errorText: null, unsettledProfile } });
    await this.data.erase(tx, subject, row.profile !== null);
  }

  /**
   * Reduces the profile of an open create to its email, which the lookup of its user needs. A profile that cannot be decrypted
   * stays, because nothing else would lead to the user once the missing key is back.
   */
  private lookupProfile(row: PersonRow): Uint8Array<ArrayBuffer> | null {
    if (!row.unsettledProfile || row.person.unsettled?.email == null) return null;
    const { unsettledProfile } = row;
    const opened = openIfReadable(() => this.seal.open(row, unsettledProfile));
    const reduced = opened && this.seal.seal(row, { email: opened.email });
    return toBytes(reduced ?? unsettledProfile);
  }

  /**
   * Decides the next step of a locked person and stores both. A person without a user goes on with one of its others.
   *
   * @param known the new known state
   */
  async update(tx: Tx, row: PersonRow, known: Person, more: MoreFields = {}): Promise<Step> {
    const person = withNextUser(known);
    const step = await this.decide(tx, row, person);
    // What the platform got for the user before says nothing about the next one.
    const fields =
      person === known ? { ...givenFor(row, person), ...more } : { inviteUrl: null, ...more, appliedProfile: null };
    await this.save(tx, row, person, step, fields);
    return step;
  }

  /**
   * Decides the next step of people again, after their desired state or what they depend on has changed. Locks them in the
   * order of their ids. Of several people with one email, the first of `ids` gets it.
   */
  async decideAll(tx: Tx, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const rows = await this.lockAll(tx, ids);
    // All of them before the first step, because two may have swapped their emails.
    await this.dependents.claimFor(tx, rows);
    const decided: ({ id: string } & StepFields)[] = [];
    for (const row of rows) {
      const { id, person } = row;
      // A deletion may erase data, and another user may be next.
      if (!person.wanted || person.others.length > 0) await this.update(tx, row, person);
      else decided.push({ id, ...stepFields(row, person, await this.decide(tx, row, person)) });
    }
    // One statement, because 500 of Prisma take a second.
    await tx.$executeRaw`
      UPDATE people p SET state = n.state, step = n.step, error_code = n."errorCode", due_at = n."dueAt", urgent = n.urgent,
        updated_at = CASE WHEN p.state = n.state THEN p.updated_at ELSE clock_timestamp() END
      FROM jsonb_to_recordset(${JSON.stringify(decided)}::jsonb)
        AS n(id uuid, state text, step text, "errorCode" text, "dueAt" timestamptz, urgent boolean)
      WHERE p.id = n.id
        AND (p.state, p.step, p.error_code, p.due_at, p.urgent) IS DISTINCT FROM (n.state, n.step, n."errorCode", n."dueAt", n.urgent)`;
  }

  /**
   * Forgets the outcomes of earlier calls of people, and decides about them again. They come last and are not urgent, or a
   * PUT would wait for all of them.
   */
  async retryAll(tx: Tx, ids: readonly string[]): Promise<void> {
    await tx.$executeRaw`
      UPDATE people SET fault = NULL, refused_operation = NULL, refused_code = NULL, refused_at = NULL, failures = 0, due_at = NULL,
        checked_absent_at = NULL, wanted_at = clock_timestamp(), review = NULL
      WHERE id = ANY (${[...ids]}::uuid[])`;
    await this.decideAll(tx, ids);
  }

  /**
   * Decides the next step, claiming the email if needed, and updates others: releases claims, requeues dependents, and
   * announces a new state. Does not store the person, which `save` does.
   *
   * @param person the new known state; `row` has the loaded one
   */
  async decide(tx: Tx, row: PersonRow, person: Person): Promise<Step> {
    const { id, kind } = row;
    await this.dependents.claimFor(tx, [{ ...row, person }]);
    const step = nextStep(person, row.context);
    const isMoved = row.state !== step.state;
    if (kind === 'client' && (isMoved || person !== row.person)) {
      await this.dependents.requeueDeleting(tx, [...row.appliedProviders, ...(person.appliedProviders ?? [])]);
    }
    if (kind === 'provider' && becameAssignable(row.person, person)) await this.dependents.requeueClientsOf(tx, id);
    if (isMoved && step.state === 'deleted') {
      const subject = await this.data.subjectOf(tx, row);
      await this.data.erase(tx, subject, row.profile !== null);
    }
    await this.announce(tx, row, person, step);
    return step;
  }

  /** Stores the known state of a person with its next step. Never writes the desired state, except that a completed deletion empties it. */
  async save(tx: Tx, row: PersonRow, person: Person, step: Step, more: MoreFields = {}): Promise<void> {
    const { urgent = row.urgent, ...others } = more;
    const { state, errorCode, ...next } = stepFields(row, person, step, urgent);
    const isUnexplained = errorCode === null || ['synced', 'waiting', 'deleted'].includes(state);
    const data = {
      ...toFields(person, row.appliedProviders),
      ...(person.unsettled === null && { unsettledProfile: null }),
      ...(person.platformUserId !== null && { newByImport: null }),
      ...others,
      ...{ state, errorCode, ...next },
      ...(isUnexplained && { errorText: null }),
      ...(row.state !== state && { updatedAt: row.context.now }),
      ...((state === 'deleted' || (!person.wanted && row.profile === null)) && ERASED),
    };
    await tx.person.update({ where: { id: row.id }, data: data as never });
    await this.users.saveOthers(tx, row.id, row.person.others, person.others);
  }

  /** True if names and email are erased already, so that a later answer must not restore them. */
  isErased({ person, profile }: PersonRow): boolean {
    return !person.wanted && profile === null;
  }

  private async announce(tx: Tx, row: PersonRow, person: Person, step: Step): Promise<void> {
    const event = eventOf({ state: row.state, fault: row.person.fault }, person, step);
    if (!event) return;
    const { kind, externalId } = row;
    await this.feed.append(tx, {
      type: event.type,
      subject: `${kind}s/${encodeURIComponent(externalId)}`,
      data: { kind, externalId, platformUserId: person.platformUserId, code: event.code },
    });
  }
}

/** The fields that follow from the next step. */
type StepFields = ReturnType<typeof stepFields>;

function stepFields(row: PersonRow, person: Person, step: Step, urgent = row.urgent) {
  return {
    state: step.state,
    step: step.do === 'call' ? step.operation : (person.call?.operation ?? null),
    errorCode: codeOf(row, person, step),
    dueAt: dueAtOf(person, step),
    urgent: urgent && ['pending', 'waiting', 'deleting'].includes(step.state),
  };
}

/** The code that is shown with a step: why it rests or failed, otherwise what the last call met. */
function codeOf(row: PersonRow, person: Person, step: Step): string | null {
  if (step.do === 'rest') return step.code;
  // A call ends the code of a rest, but keeps the code of the last call.
  return person.fault ?? (row.step === null ? null : row.errorCode);
}

/** The profile with which a new user was created, or whose email it was found by; null if it was named otherwise. */
function givenFor({ person: before, unsettledProfile, profile }: PersonRow, after: Person): MoreFields {
  if (after.platformUserId === null || after.platformUserId === before.platformUserId) return {};
  if (before.unsettled && isCreate(before.unsettled)) return { appliedProfile: unsettledProfile };
  return { appliedProfile: after.origin === 'linked' ? profile : null };
}
