import { exceeded, type Guard, type GuardName, guardsOf, type PlanCounts, parseThreshold } from './import-guards.js';

const thresholds = { deletes: parseThreshold('10%,5'), providerRemovals: parseThreshold('unlimited') };
const none: PlanCounts = { people: 0, deletes: 0, confirmedDeletes: 0, providerRemovals: 0, creates: 0, doubled: 0 };

function guard(name: GuardName, kinds: Partial<PlanCounts>[], otherIdColumn = 0): Guard | undefined {
  const counts = kinds.map((kind) => ({ ...none, ...kind }));
  return guardsOf(counts, thresholds, otherIdColumn).find((one) => one.name === name);
}

describe('a guard', () => {
  it.each([
    ['a large share of few people', { deletes: 5, people: 6 }, false],
    ['more than five people, but only a tenth', { deletes: 6, people: 60 }, false],
    ['more than five people and a tenth', { deletes: 6, people: 59 }, true],
    ['no one of no one', { deletes: 0, people: 0 }, false],
    ['a deletion that must be confirmed', { deletes: 1, people: 1_000, confirmedDeletes: 1 }, true],
  ])('of deletes, with %s', (_, counts, isExceeded) => {
    expect(guard('deletes', [counts])).toMatchObject({
      ...{ count: counts.deletes, of: counts.people },
      exceeded: isExceeded,
    });
  });

  it.each([
    ['the largest share, if none is exceeded', { deletes: 1, people: 10_000 }, { deletes: 3, people: 12 }, false],
    ['any share rather than nobody of nobody', { deletes: 0, people: 0 }, { deletes: 3, people: 12 }, false],
    ['the largest share, if both are exceeded', { deletes: 10, people: 50 }, { deletes: 6, people: 12 }, true],
    ['the one that is exceeded', { deletes: 5, people: 5 }, { deletes: 6, people: 12 }, true],
  ])('shows the kind of people with %s', (_, other, shown, isExceeded) => {
    const expected = { count: shown.deletes, of: shown.people, exceeded: isExceeded };
    expect(guard('deletes', [other, shown])).toMatchObject(expected);
    expect(guard('deletes', [shown, other])).toMatchObject(expected);
  });

  it('of deletes is exceeded if a deletion of either kind must be confirmed', () => {
    const counts = [{ people: 1_000 }, { deletes: 1, people: 1_000, confirmedDeletes: 1 }];
    expect(guard('deletes', counts)).toMatchObject({ exceeded: true });
  });

  it('without a threshold is never exceeded', () => {
    const counts = [{ providerRemovals: 9, people: 9 }];
    expect(guard('providerRemovals', counts)).toMatchObject({ count: 9, threshold: null, exceeded: false });
  });

  it('of the id column counts the people who are known under another one', () => {
    expect(guard('idColumn', [none])).toMatchObject({ count: 0, exceeded: false });
    expect(guard('idColumn', [none], 7)).toMatchObject({ count: 7, exceeded: true });
  });

  it.each([
    [2, 2, false],
    [3, 30, false],
    [4, 39, true],
  ])('of doubles: %d of %d creates', (doubled, creates, isExceeded) => {
    expect(guard('looksDoubled', [{ doubled, creates }])).toMatchObject({ exceeded: isExceeded });
  });

  it('is exceeded until its own name is confirmed', () => {
    const guards = guardsOf([{ ...none, deletes: 6, people: 12 }], thresholds, 0);
    expect(exceeded(guards, ['providerRemovals']).map(({ name }) => name)).toEqual(['deletes']);
    expect(exceeded(guards, ['deletes'])).toEqual([]);
  });
});

test('a threshold has a share, which may be a fraction, and a number of people', () => {
  expect(parseThreshold('2.5%,120')).toEqual({ percent: 2.5, people: 120 });
  expect(parseThreshold('unlimited')).toBeNull();
});
