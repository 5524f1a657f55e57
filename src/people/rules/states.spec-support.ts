import type { Verdict } from '../../platform/pauses/pause-rule.js';
import type { Answer, Result } from './apply-answer.js';
import type { SentCall } from './apply-call.js';
import { at, NOW } from './calls.spec-support.js';
import type { CallStep } from './next-step.js';
import { type DecisionContext, isCreate, type Operation, type Person, RESTORED_CALL } from './person.js';

/** The time after everything that is set now. */
export const FUTURE = at(3_600_000);

/** A person with its calls, as far as the rules distinguish them. */
export interface State {
  person: Person;
  /** The call in flight. */
  sent: SentCall | null;
  /** A call whose process died, and whose answer may still come. */
  late: SentCall | null;
}

/** Makes states alike that the rules cannot tell apart, so that there are finitely many. */
export function normal({ person, sent, late }: State): State {
  const { email, platformUserId, origin, unsettled, checkedAbsentAt, appliedProviders, refused, review } = person;
  const time = (date: Date): Date => (date > NOW ? FUTURE : NOW);
  const emailOf = (other: string | null) => (other === null ? null : other === email ? 'a1' : 'b2');
  // Of the late answers, only that of a create counts, and that of its lookup, which says less.
  const isLateOpen = late !== null && isCreate(late);
  const idOf = (id: string) =>
    id === RESTORED_CALL ? id : id === sent?.id ? 'sent' : isLateOpen && id === late?.id ? 'late' : 'earlier';
  const isRefusalKept = refused?.code === 404 || (refused?.operation === 'checkUser' && person.fault !== null);
  const current: SentCall | null = sent && {
    ...{ ...sent, id: 'sent', lookUpAt: FUTURE, version: sent.version === person.version ? 1 : 0 },
    email: sent.operation === 'checkUser' ? emailOf(sent.email) : null,
  };
  const isUser = review !== null && ['platform-user-taken', 'role-mismatch'].includes(review);
  // Without a fault, a time that has come is like none.
  const dueAt = person.dueAt && (person.dueAt > NOW || person.fault !== null) ? time(person.dueAt) : null;
  return {
    sent: current,
    late: isLateOpen ? { ...late, id: 'late', version: 0, email: null, lookUpAt: FUTURE } : null,
    person: {
      ...person,
      ...{ version: 1, email: email === null ? null : 'a1', platformUserId: platformUserId === null ? null : 'u1' },
      origin: platformUserId === null ? null : origin === 'linked' ? 'linked' : 'created',
      ...{ role: null, others: person.others.slice(0, 1).map((other) => ({ ...other, id: 'u2', role: null })) },
      call: current && { id: 'sent', operation: current.operation, version: current.version, lookUpAt: FUTURE },
      unsettled: unsettled && {
        ...{ operation: unsettled.operation, email: emailOf(unsettled.email), lookUpAt: time(unsettled.lookUpAt) },
        call: idOf(unsettled.call),
      },
      checkedAbsentAt: checkedAbsentAt && checkedAbsentAt.getTime() >= NOW.getTime() ? NOW : null,
      appliedProviders: appliedProviders && (appliedProviders[0] === 'u-provider' ? appliedProviders : []),
      fault: person.fault && 'rejected',
      review: isUser ? 'role-mismatch' : review,
      refused: refused && isRefusalKept ? { ...refused, at: NOW } : null,
      failures: person.failures > 0 ? 27 : 0,
      dueAt: current ? FUTURE : dueAt,
    },
  };
}

/** Tells states apart. */
export function keyOf({ person, sent, late }: State): string {
  const { unsettled: open, refused } = person;
  const flags = [person.kind, person.wanted, person.email, person.platformUserId, person.origin, person.fault];
  const known = [person.review, person.failures, +(person.checkedAbsentAt ?? 0), +(person.dueAt ?? 0)];
  const list = person.appliedProviders?.length ?? -1;
  const unsettled = open ? `${open.call},${open.operation},${open.email},${+open.lookUpAt}` : '';
  const current = sent ? `${sent.operation},${sent.version},${sent.subject},${sent.email},${sent.providerUserIds}` : '';
  const dead = late ? `${late.providerUserIds}` : '-';
  return `${flags}|${known}|${person.others.length}|${list}|${unsettled}|${refused?.operation},${refused?.code}|${current}|${dead}`;
}

/** The surroundings that make a difference for a person. An email is claimed, or not, before a step is stored. */
export function contextsOf({ wanted, kind }: Person): DecisionContext[] {
  const usual = { now: NOW, held: false, claim: 'held', providers: [], stillListed: false } as const;
  const open: DecisionContext = { ...usual, providers: [] };
  const isClient = kind === 'client';
  if (wanted) {
    const users = isClient ? [null, 'u-provider'] : [null];
    return (['held', 'taken'] as const).flatMap((claim) =>
      users.slice(claim === 'held' ? 0 : -1).map((platformUserId) => {
        const providers = isClient ? [{ externalId: 'p', platformUserId }] : [];
        return { ...open, claim, providers };
      }),
    );
  }
  return [{ ...open, held: isClient, stillListed: !isClient }, open];
}

/** A person with each role that its user may have, if it matters. */
export function withRoles(person: Person): Person[] {
  if (person.wanted || person.origin !== 'linked') return [person];
  return ([null, 'fits', 'differs'] as const).map((role) => ({ ...person, role }));
}

/** The call of a step, or the check that goes in its place while the API is probed. */
export function callOf(person: Person, { operation, subject, providerUserIds }: CallStep): SentCall[] {
  const emails = { wanted: person.email, attempted: person.unsettled?.email ?? null, any: null };
  const usual = { id: 'new', version: person.version, lookUpAt: FUTURE };
  const email = isCreate({ operation }) ? person.email : subject ? emails[subject] : null;
  const call: SentCall = {
    ...{ ...usual, operation, email },
    ...(subject && { subject }),
    ...(providerUserIds && { providerUserIds }),
  };
  return operation === 'checkUser' ? [call] : [call, { ...usual, operation: 'checkUser', subject: 'any', email: null }];
}

const users = (kind: 'exists' | 'created'): Result[] => [
  { kind, userId: 'u1', heldByAnother: false, role: null },
  { kind, userId: 'u2', heldByAnother: false, role: null },
  { kind, userId: 'u1', heldByAnother: true, role: null },
  ...(kind === 'exists' ? [{ kind, userId: 'u1', heldByAnother: false, role: 'differs' } as const] : []),
];

const RESULTS: Record<Operation, Result[]> = {
  checkUser: [{ kind: 'absent' }, ...users('exists')],
  createProvider: users('created'),
  createClient: users('created'),
  setClientProviders: [{ kind: 'applied' }],
  deleteUser: [{ kind: 'deleted' }],
};

const REFUSALS: [Verdict, number | null][] = [
  ...([
    ['refused', 422],
    ['personal', 403],
    ['limited', 429],
    ['unauthorized', 401],
    ['elsewhere', 405],
  ] as const),
  ...([
    ['lost', null],
    ['unreachable', null],
    ['unsent', null],
  ] as const),
].map(([verdict, status]) => [verdict, status]);

const NOT_FOUND: [Verdict, number][] = [
  ['gone', 404],
  ['doubtful', 404],
  ['unconfirmed', 404],
];

/** Every answer to a call. */
export function answersTo({ operation }: SentCall): Answer[] {
  const namesSubject = operation === 'setClientProviders' || operation === 'deleteUser';
  return [
    ...RESULTS[operation].map((result): Answer => ({ verdict: 'ok', status: 200, result })),
    ...[...REFUSALS, ...(namesSubject ? NOT_FOUND : [])].map(([verdict, status]) => ({
      verdict,
      status,
      result: null,
    })),
  ];
}
