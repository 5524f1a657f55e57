import { newcomer } from './newcomer.spec-support.js';
import { type Person, RESTORED_CALL } from './person.js';
import { RULES, type Rules } from './rules.spec-support.js';
import { DeadEnd, StateWalk } from './state-walk.spec-support.js';

const provider: Person = { ...newcomer('provider'), email: 'a1' };
const client = newcomer('client');
const restored: Person = {
  ...client,
  unsettled: { call: RESTORED_CALL, operation: 'createClient', email: null, lookUpAt: client.wantedAt },
};

function walked(rules: Rules, ...beginnings: Person[]): StateWalk {
  const walk = new StateWalk(rules);
  walk.walk(...beginnings);
  return walk;
}

const SHARED = ['email-taken', 'synced', 'rejected', 'deleted', 'role-mismatch'];

test('every state of a provider ends: by itself, with a named cause, or by an operator', () => {
  const { codes, size } = walked(RULES, provider);
  expect([...codes]).toEqual(
    expect.arrayContaining([...SHARED, 'clients-still-listed', 'delete-linked', 'delete-unconfirmed']),
  );
  expect(size).toBeGreaterThan(1_000);
});

test('every state of a client ends, also after a restore', () => {
  const { codes, size } = walked(RULES, client, restored);
  expect([...codes]).toEqual(
    expect.arrayContaining([
      ...[...SHARED, 'provider-not-mirrored', 'legal-hold', 'create-unknown', 'restored-unknown', 'delete-unknown'],
      ...['platform-user-missing', 'delete-linked', 'delete-unconfirmed'],
    ]),
  );
  expect(size).toBeGreaterThan(1_000);
});

describe('a rule is noticed that', () => {
  test.each<[string, Partial<Rules>, Person]>([
    [
      'fails a person for good, and gives an operator no choice',
      {
        applyAnswer: (...args) => ({ ...RULES.applyAnswer(...args), dueAt: null }),
        resolveChoices: (state, ...args) => (state === 'failed' ? [] : RULES.resolveChoices(state, ...args)),
      },
      provider,
    ],
    [
      'offers an operator only what changes nothing',
      { applyResolve: (person) => person, applyLink: (person) => person },
      client,
    ],
    [
      'waits in silence for the outcome of a create without an email',
      {
        nextStep: (person, context) => {
          const step = RULES.nextStep(person, context);
          const isUnknown = step.do === 'rest' && step.code === 'create-unknown';
          return isUnknown ? { do: 'rest', state: 'pending', code: null } : step;
        },
      },
      client,
    ],
    [
      'keeps a deletion back although the legal hold has ended',
      {
        nextStep: (person, context) =>
          RULES.nextStep(person, { ...context, held: !person.wanted && person.kind === 'client' }),
      },
      client,
    ],
    [
      'never settles a create beside a user that a late answer has named',
      {
        nextStep: (person, context) => {
          const isMapped = person.platformUserId !== null && person.unsettled?.operation === 'createProvider';
          return RULES.nextStep(isMapped ? { ...person, unsettled: null } : person, context);
        },
      },
      provider,
    ],
  ])('%s', (_name, broken, person) => {
    expect(() => walked({ ...RULES, ...broken }, person)).toThrow(DeadEnd);
  });
});
