import type { Verdict } from '../../platform/pauses/pause-rule.js';
import { type Answer, type AnswerFacts, applyAnswer, type Result } from './apply-answer.js';
import { applyCall, type SentCall } from './apply-call.js';
import { newcomer } from './newcomer.spec-support.js';
import type { Operation, Person } from './person.js';

export const NOW = new Date('2026-11-21T05:00:00Z');

export const at = (ms: number): Date => new Date(NOW.getTime() + ms);

/** When a call that is sent now has surely ended. */
export const ENDED = at(11_000);

/** When a create or a list that is sent now can no longer take effect. */
export const SETTLED = at(71_000);

export const FACTS: AnswerFacts = { now: NOW, limitedUntil: null, succeededAt: null, fraction: 0.5 };

/** A client with the email `a1`, and the same one with its user. */
export const unmapped: Person = { ...newcomer('client'), email: 'a1' };
export const mirrored: Person = { ...unmapped, platformUserId: 'u9', origin: 'created', appliedProviders: ['u1'] };

/** A call for a person with the email `a1`. */
export function sent(operation: Operation, more: Partial<SentCall> = {}): SentCall {
  const hasEmail = ['createProvider', 'createClient'].includes(operation) || more.subject !== undefined;
  const email = hasEmail && more.subject !== 'any' ? 'a1' : null;
  return { id: '1', operation, version: 1, lookUpAt: ENDED, email, ...more };
}

export const check = (subject: SentCall['subject'], more: Partial<SentCall> = {}): SentCall =>
  sent('checkUser', { subject, ...more });

export const create = sent('createClient', { providerUserIds: ['u1'] });
export const list = sent('setClientProviders', { providerUserIds: ['u1', 'u2'] });
export const remove = sent('deleteUser');

/** A person as it is after a call was marked. */
export const marked = (person: Person, call: SentCall, now = NOW): Person => applyCall(person, call, SETTLED, now);

export const ok = (result: Result): Answer => ({ verdict: 'ok', status: 200, result });

export const failed = (verdict: Verdict, status: number | null = null): Answer => ({ verdict, status, result: null });

export const found = (more: Partial<Extract<Result, { userId: string }>> = {}): Answer =>
  ok({ kind: 'exists', userId: 'u7', heldByAnother: false, role: null, ...more });

export const created = (userId = 'u7', heldByAnother = false): Answer =>
  ok({ kind: 'created', userId, heldByAnother, role: null });

/** A person after a call was sent and answered. */
export const answered = (person: Person, call: SentCall, answer: Answer, more: Partial<AnswerFacts> = {}): Person =>
  applyAnswer(marked(person, call), call, answer, { ...FACTS, ...more });
