import type { PlainAnswer } from './apply-answer.js';
import { isFinalRejection } from './apply-answer.js';
import {
  type BreakerCall,
  type Breakers,
  breakerOf,
  isOwnRefusal,
  meaningOf404,
  type Signal,
} from './circuit-breaker.js';
import type { CallStep } from './next-step.js';
import type { Person } from './person.js';

/** The outcome of a call, before the state of other people is considered. */
export type RawAnswer =
  | { kind: 'exists' | 'created'; userId: string }
  | { kind: 'absent' | 'applied' | 'deleted' }
  | { kind: 'not-found' | 'unauthorized' | 'wrong-url' | 'unknown' }
  /** Certainly not sent: no connection was made, the permit was too old, or the person could not be decrypted. */
  | { kind: 'unreachable' | 'not-sent' | 'unreadable' }
  | { kind: 'rejected'; status: number }
  | { kind: 'rate-limited'; retryAfterMs: number | undefined };

/** An answer as `applyAnswer` takes it, except for the holder of a user. */
type Interpreted =
  | { kind: 'exists' | 'created'; userId: string }
  | { kind: PlainAnswer }
  | { kind: 'rejected'; isFinal: boolean };

/** The meaning of an answer. */
interface Interpretation {
  /** For its person. */
  answer: Interpreted;
  /** For everyone who needs the operation; null if the answer concerns only the person. */
  signal: Signal | null;
}

/** Interprets an answer by the person's earlier refusals and by the calls of other people. Pure. */
export function interpretAnswer(
  raw: RawAnswer,
  step: CallStep,
  person: Pick<Person, 'refusal'>,
  breakers: Breakers,
  call: Pick<BreakerCall, 'url' | 'base'>,
  now: number,
): Interpretation {
  const { operation } = step;
  const breaker = breakerOf(breakers, operation);
  const refusal = person.refusal?.operation === operation ? person.refusal : null;
  // Only a refusal of the same kind shows that this person's calls fail in the same way again.
  const isSameKind = refusal?.kind === (raw.kind === 'rejected' ? 'rejected' : 'stopped');
  const isOwn = isOwnRefusal(breaker, refusal && isSameKind ? refusal.at.getTime() : null);
  switch (raw.kind) {
    case 'exists':
    case 'created':
    case 'absent':
    case 'applied':
    case 'deleted':
      return { answer: raw, signal: { kind: 'success' } };
    case 'unauthorized':
      return isOwn ? own('forbidden') : stopped('unauthorized');
    case 'wrong-url':
      // No person fails because of a URL: only this person's call is retried.
      return isOwn ? own('unreachable') : stopped('wrong-url');
    case 'not-found': {
      const isAboutUser = operation === 'deleteUser' || operation === 'setClientProviders';
      const meaning = isAboutUser ? meaningOf404(breakers, operation, call, now) : 'wrong';
      if (meaning === 'wrong') return isOwn ? own('unreachable') : stopped('wrong-url');
      return { answer: { kind: meaning === 'missing' ? 'not-found' : 'doubtful' }, signal: { kind: 'answered' } };
    }
    case 'rejected': {
      const isFinal = isFinalRejection(refusal, isOwn, breaker.block !== null);
      return { answer: { kind: 'rejected', isFinal }, signal: isOwn ? null : { kind: 'rejected', status: raw.status } };
    }
    case 'unknown':
    case 'unreachable':
      return { answer: { kind: raw.kind }, signal: { kind: 'unanswered', sent: raw.kind === 'unknown' } };
    case 'rate-limited':
      return { answer: { kind: raw.kind }, signal: raw };
    case 'not-sent':
      return { answer: { kind: 'not-sent' }, signal: { kind: 'not-sent' } };
    case 'unreadable':
      return { answer: { kind: 'unreachable' }, signal: { kind: 'not-sent' } };
  }
}

function own(kind: PlainAnswer): Interpretation {
  return { answer: { kind }, signal: null };
}

function stopped(kind: 'unauthorized' | 'wrong-url'): Interpretation {
  return { answer: { kind: 'stopped' }, signal: { kind } };
}
