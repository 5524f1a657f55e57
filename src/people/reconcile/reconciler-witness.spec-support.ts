import type { Answer } from '../model/apply-answer.js';
import { isSilent } from '../model/circuit-breaker.js';
import { type CallStep, CHECK_FRESH_MS, isCreate } from '../model/next-step.js';
import type { Operation, Person } from '../model/person.js';
import { law, type PlatformModel } from './platform-model.spec-support.js';
import { BASE, type ReconcilerTables, type Row } from './reconciler-tables.spec-support.js';

/** The observations of one person. */
interface Memory {
  /** The email that the platform last reported as unknown, and when. */
  absent: { email: string | null; at: number } | null;
  /** True if an unsettled create may have taken effect. */
  maybeCreated: boolean;
  /** Calls of deletes that may have taken effect. */
  maybeDeleted: Set<string>;
  /** Consecutive 403s by operation. */
  refusals: Map<Operation, number>;
}

/** A call as it was sent. */
interface Sent {
  id: string;
  left: Person;
  grantedAt: number;
  address: string;
}

/** Observes every call and every answer with its own memory, and throws when a law is broken. */
export class ReconcilerWitness {
  private readonly memories = new Map<string, Memory>();

  constructor(
    private readonly tables: ReconcilerTables,
    private readonly platform: PlatformModel,
  ) {}

  /** Checks a call before it is granted. @param othersInFlight true if this person has another call in flight */
  granted(row: Row, step: CallStep, call: string, othersInFlight: boolean): void {
    law(!othersInFlight, 'two concurrent calls for one person');
    law(!row.isHeld || row.person.wanted, 'a call for a deleted client under a legal hold');
    const memory = this.memory(row.id);
    const { person } = row;
    if (isCreate(step)) {
      law(person.wanted, 'a deleted person was created');
      const isChecked = memory.absent?.email === person.email && this.tables.now - memory.absent.at < CHECK_FRESH_MS;
      law(person.email === null || isChecked, 'a person was created without a check');
      law(!memory.maybeCreated, 'a person was created although an earlier create is not settled');
      const providers = this.tables.context(row).providers.map((provider) => provider.platformUserId);
      law(!providers.includes(null), 'a client was created before its providers');
      const isByPrimary = step.providerUserIds?.length === 1 && step.providerUserIds[0] === providers[0];
      law(row.kind === 'provider' || isByPrimary, 'a client was not created with its primary');
      memory.maybeCreated = true;
      memory.absent = null;
    }
    if (step.operation === 'deleteUser') {
      law(!person.wanted || memory.maybeDeleted.size > 0, 'a desired person is deleted without an earlier delete');
      memory.maybeDeleted.add(call);
    }
    const isBlind = isCreate(step) && person.email === null && isSilent(this.tables.breakers);
    law(!isBlind, 'a person without an email was created while the platform gave no answers');
    const isAboutPerson = step.operation === 'checkUser' && step.subject !== 'any';
    const isNeeded = person.wanted || memory.maybeCreated || !isAboutPerson;
    law(isNeeded, 'a deleted person was looked up without a create');
  }

  /** Checks an answered call. @param after the person after the answer */
  answered(row: Row, step: CallStep, answer: Answer, flight: Sent, after: Person): void {
    const memory = this.memory(row.id);
    if (answer.kind === 'deleted' || answer.kind === 'not-found') memory.maybeDeleted.clear();
    else if (answer.kind !== 'unknown') memory.maybeDeleted.delete(flight.id);
    if (step.subject === 'any') return;
    if (answer.kind === 'absent') {
      const email = step.subject === 'attempted' ? (flight.left.attempt?.email ?? null) : flight.left.email;
      memory.absent = { email, at: this.tables.now };
    }
    const isSettled = answer.kind === 'absent' || answer.kind === 'exists' || isCreate(step);
    if (isSettled && answer.kind !== 'unknown') memory.maybeCreated = false;
    const isRefused = answer.kind === 'forbidden' || answer.kind === 'stopped';
    const refusals = isRefused ? (memory.refusals.get(step.operation) ?? 0) + 1 : 0;
    law(answer.kind !== 'not-found' || flight.address === BASE, 'a 404 of another server was accepted');
    if (isAnswered(answer)) memory.refusals.set(step.operation, refusals);
    law(answer.kind !== 'forbidden' || refusals > 1, 'a first 403 counted only for the person');
    law(after.fault === null || row.wantedAt < flight.grantedAt, 'a person failed because of outdated data');
    if (answer.kind !== 'exists' || after.platformUserId === null) return;
    const user = this.platform.users.get(answer.userId);
    // A user who signs up with the email of a create in flight looks like the user that it creates.
    if (step.subject === 'attempted' && this.platform.newcomers.has(answer.userId)) return;
    const isOwn = user?.partnerUserId === row.id || this.platform.removedByOthers.has(answer.userId);
    law(isOwn || (after.wanted && user?.email === after.email), 'a person was linked to the wrong user');
  }

  /** Records that an operator or an event settled a create. */
  cleared(row: Row): void {
    this.memory(row.id).maybeCreated = false;
  }

  private memory(id: string): Memory {
    const memory = this.memories.get(id) ?? {
      absent: null,
      maybeCreated: false,
      maybeDeleted: new Set(),
      refusals: new Map(),
    };
    this.memories.set(id, memory);
    return memory;
  }
}

/** True if the platform performed the operation, or rejected it for this person. */
function isAnswered({ kind }: Answer): boolean {
  return !['rate-limited', 'unreachable', 'not-sent', 'unknown'].includes(kind);
}
