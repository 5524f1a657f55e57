import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { Mirror } from './mirror.spec-support.js';
import { isCreate } from './person.js';
import { BrokenLaw, type Weather } from './platform-model.spec-support.js';
import { RULES, type Rules } from './rules.spec-support.js';

const PROVIDERS = ['p1', 'p2'];
const CLIENTS = ['c1', 'c2', 'c3'];

/** An action with its name, so that a counterexample is readable. */
interface Action {
  name: string;
  apply: (mirror: Mirror) => void;
}

const action = <T>(values: fc.Arbitrary<T>, name: string, apply: (mirror: Mirror, value: T) => void) =>
  values.map(
    (value): Action => ({ name: `${name} ${JSON.stringify(value)}`, apply: (mirror) => apply(mirror, value) }),
  );

const provider = fc.constantFrom(...PROVIDERS);
const client = fc.constantFrom(...CLIENTS);
const version = fc.constantFrom('a', 'b');
const nth = fc.nat({ max: 2 });
const list = fc.uniqueArray(provider, { minLength: 1 });
const weather = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Weather>('fair') },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Weather>(
      { kind: 'rejected', status: 422 },
      { kind: 'unauthorized', status: 401 },
      { kind: 'unauthorized', status: 403 },
      { kind: 'rejected', status: 405, isWrongAddress: true },
      { kind: 'rate-limited', status: 429 },
      { kind: 'unreachable', status: null },
      { kind: 'held', status: null },
    ),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom<Weather>({ lost: 'before' }, { lost: 'after' }, { late: 0.3 }, { late: 0.99 }),
  },
);

const anyAction = fc.oneof(
  { weight: 3, arbitrary: action(fc.tuple(provider, version), 'put', (m, [id, v]) => m.put(id, 'provider', id + v)) },
  {
    weight: 4,
    arbitrary: action(fc.tuple(client, fc.option(version), list), 'put', (m, [id, v, named]) =>
      m.put(id, 'client', v && id + v, named),
    ),
  },
  { weight: 3, arbitrary: action(fc.oneof(provider, client), 'remove', (m, id) => m.remove(id)) },
  { weight: 8, arbitrary: action(fc.tuple(nth, weather), 'take', (m, [n, w]) => m.take(n, w)) },
  {
    weight: 10,
    arbitrary: action(fc.tuple(nth, weather), 'take and settle', (m, [n, w]) => {
      m.take(n, w);
      m.settle(0);
    }),
  },
  {
    weight: 4,
    arbitrary: action(fc.tuple(nth, weather, provider, version), 'put during a call', (m, [n, w, id, v]) => {
      m.take(n, w);
      m.put(id, 'provider', id + v);
      m.settle(0);
    }),
  },
  {
    weight: 3,
    arbitrary: action(fc.tuple(client, fc.option(version), list, weather), 'put and send', (m, [id, v, named, w]) => {
      m.put(id, 'client', v && id + v, named);
      m.take(2, w);
      m.settle(0);
    }),
  },
  { weight: 6, arbitrary: action(nth, 'settle', (m, n) => m.settle(n)) },
  {
    weight: 2,
    arbitrary: action(fc.constantFrom('before' as const, 'after' as const), 'crash', (m, dies) =>
      m.take(0, 'fair', dies),
    ),
  },
  { weight: 2, arbitrary: action(fc.oneof(provider, client), 'user created', (m, id) => m.userCreated(id)) },
  {
    weight: 5,
    arbitrary: action(fc.constantFrom(1_000, 5_000, 15_000, 75_000, 700_000), 'wait', (m, ms) => m.wait(ms)),
  },
);

/** Emails of users that others made on the platform. */
const others = fc.subarray([...PROVIDERS, ...CLIENTS].map((id) => `${id}b`));

/** How a history begins: with people that are stated, or mirrored. Their emails may be those of other users. */
const beginning = fc.record({ isMirrored: fc.boolean(), version });

function begin(mirror: Mirror, { isMirrored, version: first }: { isMirrored: boolean; version: string }): void {
  for (const id of PROVIDERS) mirror.put(id, 'provider', id + first);
  for (const id of CLIENTS) mirror.put(id, 'client', id === 'c3' ? null : id + first, PROVIDERS);
  if (isMirrored) mirror.drain();
}

/** Any history, then a platform that answers and operators who look. */
const mirrored = (rules: Rules) =>
  fc.property(others, beginning, fc.array(anyAction, { maxLength: 50, size: 'max' }), (emails, first, actions) => {
    const mirror = new Mirror(rules, emails);
    begin(mirror, first);
    for (const { apply } of actions) apply(mirror);
    for (let round = 0; round < 3; round++) {
      mirror.drain();
      mirror.resolveAll();
    }
    mirror.drain();
    mirror.judgeEnd();
  });

test('the platform always ends in the last desired state, with each person exactly once', () => {
  const { failed, counterexample, counterexamplePath, errorInstance, seed } = fc.check(
    mirrored(RULES),
    propertyRuns(0.2),
  );
  if (!failed) return;
  const [emails, first, actions] = counterexample ?? [[], {}, []];
  const story = actions.map(({ name }) => `  ${name}`).join('\n');
  throw new Error(
    `${errorInstance}\nusers of others: ${emails}; ${JSON.stringify(first)}\n${story}\nSEED=${seed} path ${counterexamplePath}`,
  );
});

describe('a rule is noticed that', () => {
  const broken: [string, Partial<Rules>][] = [
    [
      'forgets a create without an answer',
      {
        applyAnswer: (person, call, answer, facts) => {
          const after = RULES.applyAnswer(person, call, answer, facts);
          return isCreate(call) && answer.verdict === 'lost' ? { ...after, unsettled: null } : after;
        },
      },
    ],
    ['drops a late answer', { applyLate: (person) => person }],
    [
      'links a user by an email that the person no longer has',
      { applyAnswer: (person, call, ...rest) => RULES.applyAnswer(person, { ...call, email: person.email }, ...rest) },
    ],
    [
      'repeats a create at once, although the first may still take effect',
      { applyCall: (person, call, _settledAt, now) => RULES.applyCall(person, call, now, now) },
    ],
    [
      'forgets a create whose process died',
      { abandon: (person, now) => ({ ...RULES.abandon(person, now), unsettled: null }) },
    ],
    [
      'deletes a user that was found only by its email',
      { nextStep: (person, context) => RULES.nextStep({ ...person, role: 'fits' }, context) },
    ],
    [
      'believes the answer to a list although an earlier one may still take effect',
      {
        applyAnswer: (...args) => {
          const after = RULES.applyAnswer(...args);
          return after.unsettled?.operation === 'setClientProviders' ? { ...after, unsettled: null } : after;
        },
      },
    ],
    [
      'fails a person for good, and lets no operator retry',
      {
        applyAnswer: (...args) => ({ ...RULES.applyAnswer(...args), dueAt: null }),
        applyResolve: (person, action, context) =>
          action === 'retry' ? person : RULES.applyResolve(person, action, context),
      },
    ],
  ];

  test.each(broken)('%s', (_name, rules) => {
    const { numRuns, seed } = propertyRuns(4);
    const details = fc.check(mirrored({ ...RULES, ...rules }), { numRuns, seed, endOnFailure: true });
    expect(details.errorInstance).toBeInstanceOf(BrokenLaw);
  });
});
