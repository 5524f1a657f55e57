import { Oracle } from './oracle.js';

test('tells every law that does not hold, with a few exceptions, and nothing of those that hold', () => {
  const oracle = new Oracle();
  oracle.none('nobody is lost', []);
  oracle.same('the sum is whole', { all: 3 }, { all: 3 });
  oracle.atMost('the limit', 300, 300);
  expect(oracle.broken).toEqual([]);

  oracle.none('nobody is twice', ['a', 'b', 'c', 'd', 'e', 'f']);
  oracle.same('the sum is whole', 2, 3);
  oracle.atMost('the limit', 301, 300);
  expect(oracle.broken).toEqual([
    'nobody is twice: 6 exceptions, such as "a", "b", "c", "d", "e"',
    'the sum is whole: it is 2 and should be 3',
    'the limit: it is 301 and should be at most 300',
  ]);
});
