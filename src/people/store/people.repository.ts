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
import { conditionOf, PeopleReader, type PersonFilter } from './people-reader.repository.js';
import { neededClaims, type PersonRow, type StoredPerson, strayClaims, toFields, toHex } from './person-row.js';
import { PlatformUsersRepository } from './platform-users.repository.js';

/** The fields that may contain names or an email, as a deletion leaves them. */
const ERASED = {
  profile: null,
  profileHash: null,
  emailFingerprint: null,
  appliedProfile: null,
  inviteUrl: null,
} as const;

/** The columns of `RESET_ON_WRITE`, except the due time, because a call in flight keeps it. */
const RESET = { fault: null, refusedOperation: null, refusedCode: null, refusedAt: null, failures: 0 } as const;

/** A person whom the EHR states outside of imports comes before those of all imports, and no cancel withdraws it. */
export const STATED_BY_EHR = { urgent: true, importId: null, newByImport: null } as const;

/** Other fields of a decision. */
export type MoreFields = Partial<StoredPerson>;

/** Fields stored with a link. The profile on the platform is known only if a lost create created the user. */
export function linkedFields({ person: { unsettled }, unsettledProfile }: PersonRow): MoreFields {
  return { appliedProfile: unsettled && isCreate(unsettled) ? unsettledProfile : null };
}

/** The next step after the email was claimed or found taken, and the code shown with it. */
export interface Decision {
  step: Exclude<Step, { do: 'claim-email' }>;
  code: string | null;
}

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
  async lock(tx: Tx, where: PersonFilter): Promise<PersonRow | undefined> {
    const id = where.id ?? (await tx.person.findFirst({ where: conditionOf(where), select: { id: true } }))?.id;
    if (id === undefined) return undefined;
    await tx.$queryRaw`SELECT FROM people WHERE id = ${id}::uuid FOR UPDATE`;
    const [row] = await this.readAll(tx, [id], true);
    // The id or the user may have been given up before the lock.
    const { externalId, platformUserId } = { ...row, ...where };
    return row?.externalId === externalId && row?.platformUserId === platformUserId ? row : undefined;
  }

  /** Locks a person that must exist. */
  async mustLock(tx: Tx, id: string): Promise<PersonRow> {
    const row = await this.lock(tx, { id });
    if (!row) throw new Error('A person vanished while it was being changed.');
    return row;
  }

  /** Creates or changes a person in the desired state, before all imports. A new email ends a review. @returns its id */
  async wantPerson(tx: Tx, { kind, externalId }: PersonKey, profile: Profile): Promise<string> {
    const { id } = await this.lockNew(tx, kind, externalId);
    const known = await tx.person.findUniqueOrThrow({ where: { id } });
    const fingerprint = this.seal.emailFingerprint(profile.email);
    const hasSameEmail = known.profile !== null && toHex(known.emailFingerprint) === toHex(fingerprint);
    await tx.person.update({
      where: { id },
      data: {
        ...{ ...RESET, ...STATED_BY_EHR, wanted: true, wantedVersion: { increment: 1 } },
        ...{ profile: toBytes(this.seal.seal({ id }, profile)), profileHash: toBytes(this.seal.hash(profile)) },
        ...(known.callId === null && { dueAt: null }),
        ...(!hasSameEmail && {
          ...{ emailFingerprint: fingerprint && toBytes(fingerprint), review: null, checkedAbsentAt: null },
        }),
      },
    });
    await this.stated(tx, id);
    // A new user makes them go on, too (`decide`).
    if (kind === 'provider' && !known.wanted) await this.dependents.requeueClientsOf(tx, id);
    return id;
  }

  /** Creates a person unless it exists, or another request does, and locks it; again if it was renamed or merged meanwhile. */
  private async lockNew(tx: Tx, kind: PersonKey['kind'], externalId: string): Promise<{ id: string }> {
    await tx.$executeRaw`
      INSERT INTO people (id, kind, external_id) VALUES (${randomUUID()}::uuid, ${kind}::person_kind, ${externalId})
      ON CONFLICT (kind, external_id) DO NOTHING`;
    const [locked] = await tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM people WHERE kind = ${kind}::person_kind AND external_id = ${externalId} FOR UPDATE`;
    return locked ?? this.lockNew(tx, kind, externalId);
  }

  /** The EHR has stated the desired state now. */
  private async stated(tx: Tx, id: string): Promise<void> {
    await tx.$executeRaw`
      UPDATE people SET wanted_at = clock_timestamp(), stated_at = clock_timestamp() WHERE id = ${id}::uuid`;
  }

  /**
   * Deletes a person in the desired state, and erases it.
   *
   * @param by who states it: the EHR now, before all imports, or before a legal hold that was released
   */
  async wantAbsence(tx: Tx, row: PersonRow, by: 'ehr' | 'released' = 'ehr'): Promise<void> {
    const { id, callId, statedAt } = row;
    await tx.person.update({
      where: { id },
      data: {
        ...{ ...RESET, ...STATED_BY_EHR, wanted: false, wantedVersion: { increment: 1 } },
        ...{ review: null, checkedAbsentAt: null },
        ...(callId === null && { dueAt: null }),
      },
    });
    await this.stated(tx, id);
    if (by === 'released') await tx.person.update({ where: { id }, data: { statedAt } });
    await this.erase(tx, row);
  }

  /** Erases names, email and all copies of a person to delete, unless a legal hold keeps them. */
  async erase(tx: Tx, row: PersonRow): Promise<void> {
    if (row.heldAt !== null) return;
    const unsettledProfile = this.lookupProfile(row);
    await tx.person.update({ where: { id: row.id }, data: { ...ERASED, errorText: null, unsettledProfile } });
    await this.data.erase(tx, row, { names: row.profile !== null });
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
  async update(tx: Tx, row: PersonRow, known: Person, more: MoreFields = {}): Promise<Decision> {
    const person = withNextUser(known);
    const decision = await this.decide(tx, row, person);
    // What the platform got for the user before says nothing about the next one.
    const fields = person === known ? more : { inviteUrl: null, ...more, appliedProfile: null };
    await this.save(tx, row, person, decision, fields);
    return decision;
  }

  /**
   * Decides the next step of people again, after their desired state or what they depend on has changed. Locks them in the
   * order of their ids. Emails are claimed in the order of `ids`.
   */
  async decideAll(tx: Tx, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await tx.$queryRaw`SELECT FROM people WHERE id = ANY (${[...ids]}::uuid[]) ORDER BY id FOR UPDATE`;
    const rows = await this.readAll(tx, ids, true);
    await this.dependents.claimFor(tx, rows, ids);
    const decided: { row: PersonRow; decision: Decision }[] = [];
    for (const row of rows) {
      const step = nextStep(row.person, row.context);
      // A deletion may erase data.
      const isAlone = !row.person.wanted || row.person.others.length > 0 || step.do === 'claim-email';
      if (isAlone) await this.update(tx, row, row.person);
      else decided.push({ row, decision: decisionOf(row, row.person, step) });
    }
    for (const { row, decision } of decided) await this.announce(tx, row, row.person, decision.step);
    const fields = decided.map(({ row, decision }) => this.stepFields(row, row.person, decision));
    const column = <K extends keyof (typeof fields)[0]>(name: K) => fields.map((field) => field[name]);
    await tx.$executeRaw`
      UPDATE people p SET state = n.state, step = n.step, error_code = n.code, due_at = n.due_at, urgent = n.urgent,
        updated_at = CASE WHEN p.state = n.state THEN p.updated_at ELSE clock_timestamp() END
      FROM unnest(${decided.map(({ row }) => row.id)}::uuid[], ${column('state')}::text[], ${column('step')}::text[],
        ${column('errorCode')}::text[], ${column('dueAt')}::timestamptz[], ${column('urgent')}::boolean[])
        AS n(id, state, step, code, due_at, urgent) WHERE p.id = n.id`;
  }

  /**
   * Forgets the outcomes of earlier calls of people, and decides about them again. They come last and are not urgent, or a
   * PUT would wait for all of them.
   */
  async retryAll(tx: Tx, ids: readonly string[]): Promise<void> {
    await tx.$executeRaw`
      UPDATE people SET fault = NULL, refused_operation = NULL, refused_code = NULL, refused_at = NULL, failures = 0,
        due_at = CASE WHEN call_id IS NOT NULL THEN due_at END, checked_absent_at = NULL, wanted_at = clock_timestamp(), review = NULL
      WHERE id = ANY (${[...ids]}::uuid[])`;
    await this.decideAll(tx, ids);
  }

  /**
   * Decides the next step, claiming the email if needed, and updates others: releases claims, requeues dependents, and
   * announces a new state. Does not store the person, which `save` does.
   *
   * @param person the new known state; `row` has the loaded one
   */
  async decide(tx: Tx, row: PersonRow, person: Person): Promise<Decision> {
    const { id, kind } = row;
    if (nextStep(person, row.context).do === 'claim-email') {
      await this.dependents.claimFor(tx, [{ ...row, person }], [id]);
    }
    const step = nextStep(person, row.context);
    if (step.do === 'claim-email') throw new Error('An email claim was neither held nor taken.');
    const isMoved = row.state !== step.state;
    const isOver = step.state === 'deleted';
    if (person.platformUserId === null || isOver) {
      await this.dependents.releaseClaims(tx, [{ id, emails: strayClaims(row, isOver ? [] : neededClaims(person)) }]);
    }
    const { platformUserId, appliedProviders } = row.person;
    const isApplied = person.appliedProviders !== null && person.appliedProviders !== appliedProviders;
    if (kind === 'client' && (isMoved || isApplied || person.platformUserId !== platformUserId)) {
      await this.dependents.requeueDeleting(tx, [...row.appliedProviders, ...(person.appliedProviders ?? [])]);
    }
    if (kind === 'provider' && becameAssignable(row.person, person)) await this.dependents.requeueClientsOf(tx, id);
    if (isMoved && isOver) await this.data.erase(tx, row, { names: row.profile !== null });
    await this.announce(tx, row, person, step);
    return decisionOf(row, person, step);
  }

  /** Stores the known state of a person with its next step. Never writes the desired state, except that a completed deletion empties it. */
  async save(tx: Tx, row: PersonRow, person: Person, decision: Decision, more: MoreFields = {}): Promise<void> {
    const { urgent = row.urgent, ...others } = more;
    const { state } = decision.step;
    const isEmptied = state === 'deleted' || (!person.wanted && row.profile === null);
    const isUnexplained = decision.code === null || ['synced', 'waiting', 'deleted'].includes(state);
    const data = {
      ...toFields(person, row.appliedProviders),
      ...(person.unsettled === null && { unsettledProfile: null }),
      ...(person.platformUserId !== null && { newByImport: null }),
      ...others,
      ...this.stepFields(row, person, decision, urgent),
      ...(isUnexplained && { errorText: null }),
      ...(row.state !== state && { updatedAt: row.context.now }),
      ...(isEmptied && ERASED),
    };
    await tx.person.update({ where: { id: row.id }, data: data as never });
    await this.users.saveOthers(tx, row.id, row.person.others, person.others);
  }

  private stepFields(row: PersonRow, person: Person, decision: Decision, urgent = row.urgent) {
    const { step, code } = decision;
    return {
      state: step.state,
      step: step.do === 'call' ? step.operation : (person.call?.operation ?? null),
      errorCode: code,
      dueAt: dueAtOf(person, step),
      urgent: urgent && isOpen(decision),
    };
  }

  /** True if names and email are erased already, so that a later answer must not restore them. */
  isErased({ person, profile }: PersonRow): boolean {
    return !person.wanted && profile === null;
  }

  private async announce(tx: Tx, row: PersonRow, person: Person, step: Decision['step']): Promise<void> {
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

/** The code that is shown with a step: why it rests or failed, otherwise what the last call met. */
function decisionOf(row: PersonRow, person: Person, step: Step): Decision {
  if (step.do === 'claim-email') throw new Error('An email must be claimed first.');
  if (step.do === 'rest') return { step, code: step.code };
  // A call ends the code of a rest, but keeps the code of the last call.
  return { step, code: person.fault ?? (row.step === null ? null : row.errorCode) };
}

const isOpen = ({ step }: Decision): boolean => ['pending', 'waiting', 'deleting'].includes(step.state);
