import { exceeded, type Guard, guardsOf, parseThreshold } from './import-guards.js';

const threshold = parseThreshold('10%,5');
const thresholds = { deletes: threshold, providerRemovals: parseThreshold('unlimited') };
const none = { deletes: 0, providerRemovals: 0 };

/** The guard of the deletes, by kind of person. */
function deletes(kinds: { count: number; of: number }[], nameless = 0): Guard | undefined {
  const counts = kinds.map(({ count, of }) => ({ ...none, deletes: count, people: of }));
  return guardsOf(counts, nameless, thresholds)[0];
}

describe('what an import may do in the large', () => {
  it.each([
    [{ count: 5, of: 6 }, false], // a large share, but of few people
    [{ count: 6, of: 60 }, false], // more than five, but not more than a tenth
    [{ count: 6, of: 59 }, true],
    [{ count: 1_000, of: 100_000 }, false],
    [{ count: 0, of: 0 }, false],
  ])('is passed by more than the share and more than the number: %j', (count, isExceeded) => {
    expect(deletes([count])).toMatchObject({ ...count, exceeded: isExceeded });
  });

  it('counts by kind of person: half of the clients is too many among however many providers', () => {
    const [clients, providers] = [
      { count: 6, of: 12 },
      { count: 1, of: 10_000 },
    ];
    expect(deletes([providers, clients])).toMatchObject({ ...clients, exceeded: true });
  });

  it('is passed by any delete while rejected rows do not say whom they name', () => {
    expect(deletes([{ count: 1, of: 10_000 }], 3)).toMatchObject({ nameless: 3, exceeded: true });
    expect(deletes([{ count: 0, of: 10_000 }], 3)).toMatchObject({ exceeded: false });
    const [nobody, providers] = [
      { count: 0, of: 0 },
      { count: 1, of: 10 },
    ];
    expect(deletes([nobody, providers], 3)).toMatchObject({ ...providers, exceeded: true });
  });

  it('has no bound where none is set', () => {
    const guards = guardsOf([{ ...none, providerRemovals: 9, people: 9 }], 0, thresholds);
    expect(guards[1]).toMatchObject({ name: 'providerRemovals', count: 9, threshold: null, exceeded: false });
  });

  it('stands until its own name is overridden', () => {
    const guards = [deletes([{ count: 6, of: 12 }])].flatMap((guard) => guard ?? []);
    expect(exceeded(guards, ['providerRemovals'])).toHaveLength(1);
    expect(exceeded(guards, ['deletes'])).toEqual([]);
  });
});
