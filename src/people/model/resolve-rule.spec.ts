import { newcomer } from '../reconcile/newcomer.spec-support.js';
import type { PersonState } from './person.js';
import { applyResolve, checkResolve, type ResolveAction, resolveChoices } from './resolve-rule.js';

const somebody = newcomer('client');
const mapped = { ...somebody, platformUserId: 'u-1' };
/** The type of the refusal, or null. */
function resolveRefusal(...asked: Parameters<typeof checkResolve>): string | null {
  try {
    checkResolve(...asked);
    return null;
  } catch (problem) {
    return (problem as { type: string }).type;
  }
}

const ACTIONS: ResolveAction[] = ['link', 'create', 'retry', 'ignore'];

test.each<PersonState>(['needs-review', 'failed'])(
  'a person without a user that is %s may be resolved in every way',
  (state) => {
    expect(ACTIONS.map((action) => resolveRefusal(action, state, somebody))).toEqual([null, null, null, null]);
  },
);

test.each<PersonState>(['needs-review', 'failed'])(
  'a person with a user that is %s is made again only when the platform has lost that user',
  (state) => {
    const refusals = ACTIONS.map((action) => resolveRefusal(action, state, mapped));
    expect(refusals).toEqual([null, 'has-platform-user', null, null]);
    const lost = { ...mapped, review: 'platform-user-missing' as const };
    expect(resolveRefusal('create', state, lost)).toBeNull();
  },
);

test('delete is for a client that was linked by its email alone', () => {
  const linked = { ...mapped, roleKnown: false, wanted: false };
  expect(resolveRefusal('delete', 'needs-review', linked)).toBeNull();
  for (const other of [somebody, mapped, { ...linked, wanted: true }, { ...linked, roleKnown: true }]) {
    expect(resolveRefusal('delete', 'needs-review', other)).toBe('nothing-to-resolve');
  }
});

test('a synced person is never made again, linked elsewhere or left out', () => {
  for (const action of ['link', 'create', 'ignore'] as const) {
    expect(resolveRefusal(action, 'synced', mapped)).toBe('nothing-to-resolve');
  }
});

describe('the choices of a person', () => {
  const actions = (...asked: Parameters<typeof resolveChoices>) => resolveChoices(...asked).map(({ action }) => action);

  test('are what would be taken, and none where nothing is to be resolved', () => {
    expect(actions('needs-review', somebody)).toEqual(ACTIONS);
    expect(actions('failed', mapped)).toEqual(['link', 'retry', 'ignore']);
    expect(actions('synced', mapped)).toEqual([]);
  });

  test('each say what they do, which is another thing for somebody who is to be gone', () => {
    for (const wanted of [true, false]) {
      const linked = { ...mapped, roleKnown: false, wanted };
      const texts = resolveChoices('needs-review', linked).map(({ does }) => does);
      expect(texts.every((text) => text.endsWith('.'))).toBe(true);
      expect(new Set(texts).size).toBe(texts.length);
    }
  });

  test('of ignoring for somebody who is to be gone tell whether the user is deleted', () => {
    const ignoring = (person: typeof mapped | typeof somebody) => ({
      says: resolveChoices('needs-review', person)
        .find(({ action }) => action === 'ignore')
        ?.does.startsWith('Deletes'),
      does: applyResolve(person, 'ignore').platformUserId !== null,
    });
    const gone = { ...mapped, wanted: false };
    expect(ignoring(gone)).toEqual({ says: true, does: true });
    expect(ignoring({ ...gone, roleKnown: false })).toEqual({ says: false, does: false });
    expect(ignoring({ ...somebody, wanted: false })).toEqual({ says: false, does: false });
  });
});

test('a retry harms nobody', () => {
  expect(resolveRefusal('retry', 'synced', mapped)).toBeNull();
});

test('somebody with whom the service has not begun may be linked beforehand', () => {
  expect(resolveRefusal('link', 'waiting', somebody)).toBeNull();
  expect(resolveRefusal('create', 'waiting', somebody)).toBe('nothing-to-resolve');
});

test('while a call is not settled the service may still find out itself', () => {
  const lookUpAt = new Date(0);
  const attempt = { callId: '1', operation: 'createClient' as const, email: null, lookUpAt };
  expect(resolveRefusal('link', 'pending', { ...somebody, attempt })).toBe('call-under-way');
});
