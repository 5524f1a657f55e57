import { Oracle } from './oracle.js';

test('reports each violated invariant with up to five exceptions, and no others', () => {
  const oracle = new Oracle();
  oracle.none('no one is lost', []);
  oracle.same('the sum is complete', { all: 3 }, { all: 3 });
  oracle.atMost('the limit', 300, 300);
  expect(oracle.broken).toEqual([]);

  oracle.none('no one is duplicated', ['a', 'b', 'c', 'd', 'e', 'f']);
  oracle.same('the sum is complete', 2, 3);
  oracle.atMost('the limit', 301, 300);
  expect(oracle.broken).toEqual([
    'no one is duplicated: 6 exceptions, such as "a", "b", "c", "d", "e"',
    'the sum is complete: it is 2 and should be 3',
    'the limit: it is 301 and should be at most 300',
  ]);
});
