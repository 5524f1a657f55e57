import { newcomer } from './newcomer.spec-support.js';
import type { Person, PersonState } from './person.js';
import { applyLink, applyResolve, checkResolve, type ResolveAction, resolveChoices } from './resolve-rule.js';

const unmapped = newcomer('client');
const mapped = { ...unmapped, platformUserId: 'u-1' };
const now = new Date('2026-11-21T05:00:00Z');

/** The type of the problem, or null. */
function resolveProblem(action: ResolveAction, state: PersonState, person: Person): string | null {
  try {
    checkResolve(action, state, person);
    return null;
  } catch (problem) {
    return (problem as { type: string }).type;
  }
}

const ACTIONS: ResolveAction[] = ['link', 'create', 'retry', 'ignore'];

test('a refused action is answered with the accepted ones', () => {
  expect(() => checkResolve('create', 'failed', mapped)).toThrow(
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

test('a deletion that was not confirmed accepts create, which counts the person as deleted', () => {
  const doubted: Person = { ...mapped, wanted: false, review: 'delete-unconfirmed' };
  expect(resolveProblem('create', 'needs-review', doubted)).toBeNull();
  expect(applyResolve(doubted, 'create', now)).toMatchObject({ platformUserId: null, review: null, unsettled: null });
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
  const actions = (state: PersonState, person: Person) => resolveChoices(state, person).map(({ action }) => action);

  test('are the accepted actions, and none if there is nothing to resolve', () => {
    expect(actions('needs-review', unmapped)).toEqual(ACTIONS);
    expect(actions('failed', mapped)).toEqual(['link', 'retry', 'ignore']);
    expect(actions('synced', mapped)).toEqual([]);
  });

  test('each have their own description, for desired and for deleted people', () => {
    for (const wanted of [true, false]) {
      const linked: Person = { ...mapped, origin: 'linked', wanted };
      const texts = resolveChoices('needs-review', linked).map(({ does }) => does);
      expect(texts.every((text) => text.endsWith('.'))).toBe(true);
      expect(new Set(texts).size).toBe(texts.length);
    }
  });

  test('describe whether ignoring a deleted person deletes its user', () => {
    const ignoring = (person: Person) => ({
      says: resolveChoices('needs-review', person)
        .find(({ action }) => action === 'ignore')
        ?.does.startsWith('Deletes'),
      does: applyResolve(person, 'ignore', now).platformUserId !== null,
    });
    const gone = { ...mapped, wanted: false };
    expect(ignoring(gone)).toEqual({ says: true, does: true });
    expect(ignoring({ ...gone, origin: 'linked' })).toEqual({ says: false, does: false });
    expect(ignoring({ ...unmapped, wanted: false })).toEqual({ says: false, does: false });
  });
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
