import { newcomer } from './newcomer.spec-support.js';
import { nextStep } from './next-step.js';
import type { DecisionContext, Person, PersonState } from './person.js';
import {
  applyLink,
  applyResolve,
  checkResolve,
  keepsFormerUser,
  type ResolveAction,
  resolveChoices,
} from './resolve-rule.js';

const unmapped = newcomer('client');
const mapped = { ...unmapped, platformUserId: 'u-1' };
const known: DecisionContext = {
  ...{ now: new Date('2026-11-21T05:00:00Z'), held: false, claim: 'held', providers: [], stillListed: false },
};

/** The type of the problem, or null. */
function resolveProblem(action: ResolveAction, state: PersonState, person: Person, context = known): string | null {
  try {
    checkResolve(action, state, person, context);
    return null;
  } catch (problem) {
    return (problem as { type: string }).type;
  }
}

const ACTIONS: ResolveAction[] = ['link', 'create', 'retry', 'ignore'];

test('a refused action is answered with the accepted ones', () => {
  expect(() => checkResolve('create', 'failed', { ...mapped, fault: 'rejected' }, known)).toThrow(
    expect.objectContaining({ more: { extensions: { state: 'failed', choices: ['link', 'retry', 'ignore'] } } }),
  );
});

test.each<PersonState>(['needs-review', 'failed'])('a %s person without a user accepts every action', (state) => {
  expect(ACTIONS.map((action) => resolveProblem(action, state, unmapped))).toEqual([null, null, null, null]);
});

test.each<PersonState>(['needs-review', 'failed'])(
  'a %s person with a user is created again only if the platform lost that user',
  (state) => {
    const refusals = ACTIONS.map((action) => resolveProblem(action, state, mapped));
    expect(refusals).toEqual([null, 'has-platform-user', null, null]);
    const lost = { ...mapped, review: 'platform-user-missing' as const };
    expect(resolveProblem('create', state, lost)).toBeNull();
  },
);

test('deleted is accepted only for a deletion that was not confirmed, and counts the person as deleted', () => {
  const doubted: Person = { ...mapped, wanted: false, review: 'delete-unconfirmed' };
  expect(resolveProblem('deleted', 'needs-review', doubted)).toBeNull();
  expect(applyResolve(doubted, 'deleted', known)).toMatchObject({
    platformUserId: null,
    review: null,
    unsettled: null,
  });
  for (const other of [mapped, { ...doubted, wanted: true }, { ...doubted, review: null }])
    expect(resolveProblem('deleted', 'needs-review', other)).toBe('nothing-to-resolve');
  expect(resolveProblem('deleted', 'deleting', doubted)).toBe('nothing-to-resolve'); // under a legal hold
});

test('create is only for a person that the EHR wants', () => {
  for (const review of [null, 'delete-unconfirmed'] as const) {
    const leaving: Person = { ...unmapped, wanted: false, review };
    expect(resolveProblem('create', 'needs-review', leaving)).toBe('nothing-to-resolve');
  }
});

test('delete is accepted only for a deleted person whose user is doubtful', () => {
  const linked: Person = { ...mapped, origin: 'linked', wanted: false };
  expect(resolveProblem('delete', 'needs-review', linked)).toBeNull();
  for (const other of [unmapped, mapped, { ...linked, wanted: true }, { ...linked, origin: 'resolved' as const }]) {
    expect(resolveProblem('delete', 'needs-review', other)).toBe('nothing-to-resolve');
  }
  expect(resolveProblem('delete', 'needs-review', { ...linked, role: 'fits' })).toBe('nothing-to-resolve');
});

test('a synced person is never created again, linked elsewhere or ignored', () => {
  for (const action of ['link', 'create', 'ignore'] as const) {
    expect(resolveProblem(action, 'synced', mapped)).toBe('nothing-to-resolve');
  }
});

describe('the choices of a person', () => {
  test('say what happens to its other accounts', () => {
    const person: Person = { ...mapped, others: [{ id: 'u-2', origin: 'created', role: null }] };
    const deletions: Person[] = [
      { ...person, wanted: false, review: 'delete-unconfirmed' },
      { ...person, wanted: false, origin: 'linked' },
    ];
    const created = choices('needs-review', { ...person, review: 'platform-user-missing' }).filter(
      ({ action }) => action === 'create',
    );
    const told = [...deletions.flatMap((each) => choices('needs-review', each)), ...created];
    expect(told.length).toBeGreaterThan(6);
    for (const { action, does } of told)
      expect([action, does]).toEqual([action, expect.stringMatching(/other account/i)]);
  });

  const choices = (state: PersonState, person: Person, context = known) => resolveChoices(state, person, context);
  const actions = (...given: Parameters<typeof choices>) => choices(...given).map(({ action }) => action);
  const failed: Person = { ...mapped, fault: 'rejected' };

  test('are the accepted actions, and none if there is nothing to resolve', () => {
    expect(actions('failed', { ...unmapped, fault: 'rejected' })).toEqual(ACTIONS);
    expect(actions('failed', failed)).toEqual(['link', 'retry', 'ignore']);
    expect(actions('synced', mapped)).toEqual([]);
  });

  test('leave out those after which the person would stop again for the same reason', () => {
    const shared: Person = { ...unmapped, email: 'a1' };
    expect(actions('needs-review', shared, { ...known, claim: 'taken' })).toEqual(['link', 'retry', 'ignore']);
    expect(actions('failed', { ...failed, fault: 'ignored' })).toEqual(['link', 'retry']);
    expect(actions('needs-review', { ...mapped, origin: 'linked', wanted: false })).toEqual([
      ...['link', 'ignore', 'delete'],
    ]);
  });

  test('each say in their own words what they do, also to a person to delete', () => {
    const texts = [
      choices('failed', { ...unmapped, fault: 'rejected' }),
      choices('needs-review', { ...mapped, origin: 'linked', wanted: false }),
      choices('needs-review', { ...mapped, review: 'delete-unconfirmed', wanted: false }),
    ].map((offered) => offered.map(({ does }) => does));
    for (const does of texts) {
      expect(does.every((text) => text.endsWith('.'))).toBe(true);
      expect(new Set(does).size).toBe(does.length);
    }
  });
});

test('ignore counts a person to delete as deleted, and leaves its account', () => {
  for (const origin of ['created', 'linked'] as const) {
    const ignored = applyResolve({ ...mapped, origin, wanted: false, fault: 'rejected' }, 'ignore', known);
    expect(nextStep(ignored, known)).toEqual({ do: 'rest', state: 'deleted', code: null });
  }
});

test('the sessions of a person that lost its user still lead to it, unless the user may be someone else’s', () => {
  const leaving: Person = { ...mapped, origin: 'created', wanted: false };
  const keeps = (action: ResolveAction, person: Person) => keepsFormerUser(action, person);
  expect([keeps('create', mapped), keeps('deleted', leaving), keeps('ignore', leaving)]).toEqual([true, true, true]);
  expect([keeps('ignore', mapped), keeps('ignore', { ...leaving, origin: 'linked' })]).toEqual([false, false]);
});

test('a retry is accepted in any state', () => {
  expect(resolveProblem('retry', 'synced', mapped)).toBeNull();
});

test('a link is accepted before the first call for a person', () => {
  expect(resolveProblem('link', 'waiting', unmapped)).toBeNull();
  expect(resolveProblem('create', 'waiting', unmapped)).toBe('nothing-to-resolve');
});

test('a link is rejected while a call is unsettled', () => {
  const lookUpAt = new Date(0);
  const unsettled = { call: '1', operation: 'createClient' as const, email: null, lookUpAt };
  expect(resolveProblem('link', 'pending', { ...unmapped, unsettled })).toBe('call-under-way');
});

describe('the user that a link replaces', () => {
  const linked = (more: Partial<Person>) => applyLink({ ...mapped, ...more }, 'u-2', 'resolved').others;

  test('stays with the person if it was made for it', () => {
    expect(linked({ origin: 'created' })).toEqual([{ id: 'u-1', origin: 'created', role: null }]);
    expect(linked({ origin: 'event', others: [{ id: 'u-2', origin: 'event', role: null }] })).toMatchObject([
      { id: 'u-1' },
    ]);
  });

  test('is forgotten if it may be someone else’s, or if the platform has lost it', () => {
    expect(linked({ origin: 'linked' })).toEqual([]);
    expect(linked({ origin: 'resolved' })).toEqual([]);
    expect(linked({ origin: 'created', review: 'platform-user-missing' })).toEqual([]);
    expect(applyLink({ ...mapped, origin: 'created' }, 'u-1', 'resolved').others).toEqual([]);
  });
});
