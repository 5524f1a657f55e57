import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import type { Weather } from './platform-model.spec-support.js';
import { judgeEnd, judgeMoment, judgeRest } from './reconciler-laws.spec-support.js';
import { ReconcilerModel } from './reconciler-model.spec-support.js';

const PROVIDERS = ['p1', 'p2', 'p3'];
const CLIENTS = ['c1', 'c2', 'c3', 'c4'];
const EMAILS = ['e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7'];

/** The initial states: no people, all people desired, or all people mirrored. */
const BEGINNINGS = ['empty', 'wanted', 'mirrored'] as const;

function begin(model: ReconcilerModel, beginning: (typeof BEGINNINGS)[number]): void {
  if (beginning === 'empty') return;
  for (const [n, id] of PROVIDERS.entries()) model.putProvider(id, `e${n + 1}`);
  for (const [n, id] of CLIENTS.entries()) model.putClient(id, n < 2 ? `e${n + 4}` : null, PROVIDERS.slice(n % 2));
  if (beginning === 'mirrored') model.drain();
}

/** An action with a description, so that a counterexample is readable. */
type Action = { name: string; apply: (model: ReconcilerModel) => void };

const action = <T>(values: fc.Arbitrary<T>, name: string, apply: (model: ReconcilerModel, value: T) => void) =>
  values.map((value): Action => ({ name: `${name} ${JSON.stringify(value)}`, apply: (model) => apply(model, value) }));

const provider = fc.constantFrom(...PROVIDERS);
const client = fc.constantFrom(...CLIENTS);
const email = fc.constantFrom(...EMAILS);
const list = fc.uniqueArray(provider, { minLength: 1 });
const choice = fc.nat({ max: 3 });
const weather: fc.Arbitrary<Weather> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Weather>({ kind: 'fair' }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...(['rejected', 'refused', 'refused', 'rate-limited', 'unreachable', 'not-sent'] as const).map(
        (kind): Weather => ({ kind }),
      ),
    ),
  },
  { weight: 3, arbitrary: fc.boolean().map((committed): Weather => ({ kind: 'lost', committed })) },
  { weight: 2, arbitrary: fc.constantFrom(0.01, 0.3, 0.99).map((part): Weather => ({ kind: 'late', part })) },
);

const anyAction = fc.oneof(
  { weight: 3, arbitrary: action(fc.tuple(provider, email), 'put provider', (m, [p, e]) => m.putProvider(p, e)) },
  {
    weight: 4,
    arbitrary: action(fc.tuple(client, fc.option(email), list), 'put client', (m, [c, e, l]) => m.putClient(c, e, l)),
  },
  { weight: 2, arbitrary: action(fc.tuple(client, list), 'put list', (m, [c, l]) => m.putList(c, l)) },
  { weight: 3, arbitrary: action(fc.oneof(provider, client), 'remove', (m, id) => m.remove(id)) },
  { weight: 2, arbitrary: action(fc.tuple(client, fc.boolean()), 'legal hold', (m, [c, isHeld]) => m.hold(c, isHeld)) },
  { weight: 1, arbitrary: action(fc.oneof(provider, client), 'resolve', (m, id) => m.resolve(id)) },
  {
    weight: 12,
    arbitrary: action(
      fc.tuple(choice, weather, fc.oneof({ weight: 8, arbitrary: fc.constant(false) }, fc.boolean())),
      'claim',
      (m, [n, w, hangs]) => m.claim(n, w, hangs),
    ),
  },
  {
    weight: 10,
    arbitrary: action(fc.tuple(choice, weather), 'claim and record', (m, [n, w]) => {
      m.claim(n, w, false);
      m.record(m.flights.length - 1);
    }),
  },
  { weight: 6, arbitrary: action(choice, 'arrive', (m, n) => m.arrive(n)) },
  { weight: 10, arbitrary: action(choice, 'record', (m, n) => m.record(n)) },
  { weight: 2, arbitrary: action(choice, 'user created', (m, n) => m.userCreated(n)) },
  { weight: 2, arbitrary: action(fc.tuple(choice, fc.boolean()), 'crash', (m, [n, a]) => m.crash(n, a)) },
  { weight: 5, arbitrary: action(fc.constantFrom(1, 1_000, 5_000, 20_000, 70_000), 'wait', (m, ms) => m.wait(ms)) },
  {
    weight: 1,
    arbitrary: action(fc.boolean(), 'move to the right address', (m, isRight) => m.moveTo(isRight)),
  },
  { weight: 1, arbitrary: action(email, 'sign up', (m, address) => m.platform.signUp(address)) },
  {
    weight: 1,
    arbitrary: action(fc.nat({ max: 9 }), 'remove by others', (m, n) => m.removeByOthers(n)),
  },
);

test('the platform always ends in the desired state, with each person exactly once', () => {
  const property = fc.property(
    fc.constantFrom(...BEGINNINGS),
    fc.subarray(EMAILS),
    fc.array(anyAction, { maxLength: 60, size: 'max' }),
    (beginning, existingEmails, actions) => {
      const model = new ReconcilerModel(existingEmails);
      begin(model, beginning);
      for (const { apply } of actions) {
        apply(model);
        judgeMoment(model);
      }
      model.drain();
      judgeRest(model);
      for (let round = 0; round < 4; round++) {
        model.settleManually();
        model.drain();
      }
      judgeEnd(model);
    },
  );
  const details = fc.check(property, propertyRuns());
  if (!details.failed) return;
  const [beginning, existing, actions] = details.counterexample ?? ['empty', [], []];
  const story = actions.map(({ name }) => `  ${name}`).join('\n');
  throw new Error(
    `${details.errorInstance instanceof Error ? details.errorInstance.message : 'failed'}\ninitially ${beginning}; users of others: ${existing}\n${story}\nSEED=${details.seed} path ${details.counterexamplePath}`,
  );
});
