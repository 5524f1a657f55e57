import type { Answer } from '../model/apply-answer.js';
import { type CallStep, CHECK_FRESH_MS, isCreate } from '../model/next-step.js';
import type { Operation, Person } from '../model/person.js';
import { law, type PlatformModel, type Reply } from './platform-model.spec-support.js';
import type { ReconcilerTables, Row } from './reconciler-tables.spec-support.js';

/** Where the platform lives. */
export const RIGHT_ADDRESS = 'right';

/** What was seen of one person. */
interface Memory {
  /** The email that the platform called unknown last, and when. */
  absent: { email: string | null; at: number } | null;
  /** Whether a create may have been done and was not cleared up since. */
  maybeMade: boolean;
  /** Deletions, by their calls, that may have been done. */
  maybeDeleted: Set<string>;
  /** 403s in a row, by operation. */
  refusals: Map<Operation, number>;
}

/** A call as it left. */
interface Sent {
  id: string;
  left: Person;
  grantedAt: number;
  address: string;
}

/** Watches every call and every answer, remembers by itself, and throws when a law of the mirror is broken. */
export class ReconcilerWitness {
  private readonly memories = new Map<string, Memory>();

  constructor(
    private readonly tables: ReconcilerTables,
    private readonly platform: PlatformModel,
  ) {}

  /** A call is about to be granted. @param othersUnderWay whether another call of this person is */
  granted(row: Row, step: CallStep, call: string, othersUnderWay: boolean): void {
    law(!othersUnderWay, 'two calls at once for one person');
    const memory = this.memory(row.id);
    const { person } = row;
    if (isCreate(step)) {
      law(person.wanted, 'somebody was created who is not wanted');
      const isChecked = memory.absent?.email === person.email && this.tables.now - memory.absent.at < CHECK_FRESH_MS;
      law(person.email === null || isChecked, 'somebody was created without a check');
      law(!memory.maybeMade, 'somebody was created whose earlier create is not settled');
      const providers = this.tables.context(row).providers.map((provider) => provider.platformUserId);
      law(!providers.includes(null), 'a client was created before its providers');
      const isByPrimary = step.providerUserIds?.length === 1 && step.providerUserIds[0] === providers[0];
      law(row.kind === 'provider' || isByPrimary, 'a client was not created by its primary');
      memory.maybeMade = true;
      memory.absent = null;
    }
    if (step.operation === 'deleteUser') {
      law(!person.wanted || memory.maybeDeleted.size > 0, 'somebody is deleted who is wanted, and was not deleted');
      memory.maybeDeleted.add(call);
    }
    const isBlind = isCreate(step) && person.email === null && this.tables.context(row).answersMissing;
    law(!isBlind, 'somebody without an email was created while the platform gave no answers');
    const isMeant = person.wanted || memory.maybeMade || step.operation !== 'checkUser';
    law(isMeant, 'somebody is checked and deleted who was never attempted');
  }

  /** A call was answered. @param after the person as it is known now */
  answered(row: Row, step: CallStep, answer: Answer, flight: Sent, after: Person): void {
    const memory = this.memory(row.id);
    if (answer.kind === 'deleted' || answer.kind === 'not-found') memory.maybeDeleted.clear();
    else if (answer.kind !== 'unknown') memory.maybeDeleted.delete(flight.id);
    if (step.subject === 'primary') return;
    if (answer.kind === 'absent') {
      const email = step.subject === 'attempted' ? (flight.left.attempt?.email ?? null) : flight.left.email;
      memory.absent = { email, at: this.tables.now };
    }
    const isTold = answer.kind === 'absent' || answer.kind === 'exists' || isCreate(step);
    if (isTold && answer.kind !== 'unknown') memory.maybeMade = false;
    const isRefused = answer.kind === 'forbidden' || answer.kind === 'refused-for-all';
    const refusals = isRefused ? (memory.refusals.get(step.operation) ?? 0) + 1 : 0;
    law(answer.kind !== 'not-found' || flight.address === RIGHT_ADDRESS, 'a 404 from another address was believed');
    if (isAnswered(answer)) memory.refusals.set(step.operation, refusals);
    law(answer.kind !== 'forbidden' || refusals > 1, 'a first 403 was held to be the person’s own');
    law(after.fault === null || row.wantedAt < flight.grantedAt, 'somebody failed for what is not wanted any more');
    if (answer.kind !== 'exists' || after.platformUserId === null) return;
    const user = this.platform.users.get(answer.userId);
    // Who signs up with the email of a create that is under way can't be told from whom it made.
    if (step.subject === 'attempted' && this.platform.newcomers.has(answer.userId)) return;
    const isOwn = user?.partnerUserId === row.id || this.platform.removedByOthers.has(answer.userId);
    law(isOwn || (after.wanted && user?.email === after.email), 'somebody was linked to a user who is not meant');
  }

  /** A human being cleared up what became of a create. */
  cleared(row: Row): void {
    this.memory(row.id).maybeMade = false;
  }

  private memory(id: string): Memory {
    const memory = this.memories.get(id) ?? {
      absent: null,
      maybeMade: false,
      maybeDeleted: new Set(),
      refusals: new Map(),
    };
    this.memories.set(id, memory);
    return memory;
  }
}

/** Whether the platform did as it was asked, or said why it can't for this person. */
export function isAnswered({ kind }: Answer | Reply): boolean {
  return !['rate-limited', 'unreachable', 'not-sent', 'unknown'].includes(kind);
}
