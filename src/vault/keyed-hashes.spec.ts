import { hashHeader, KeyedHashes, keyIdOf } from './keyed-hashes.js';
import { Macs } from './macs.js';

const key = (id: string, byte: number) => ({ id, key: Buffer.alloc(32, byte) });
const [k1, k2] = [key('k1', 1), key('k2', 2)];

test('equal values of one purpose have equal hashes; a purpose and a key separate them', () => {
  const hashes = new KeyedHashes([k1]);
  expect(hashes.of('email', 'a')).toEqual(hashes.of('email', 'a'));
  expect(hashes.of('email', 'a')).not.toEqual(hashes.of('email', 'b'));
  expect(hashes.of('email', 'a')).not.toEqual(hashes.of('profile', 'a'));
  expect(new KeyedHashes([key('k1', 3)]).matches('email', 'a', hashes.of('email', 'a'))).toBe(false);
});

test('the first key makes hashes, all keys are accepted, and a hash names its key', () => {
  const [old, both] = [new KeyedHashes([k1]), new KeyedHashes([k2, k1])];
  const hash = old.of('email', 'a');
  expect(keyIdOf(hash)).toBe('k1');
  expect([both.matches('email', 'a', hash), both.isCurrent(hash)]).toEqual([true, false]);
  expect(both.of('email', 'a').subarray(0, 3)).toEqual(hashHeader('k2'));
  expect(new KeyedHashes([k2]).matches('email', 'a', hash)).toBe(false);
});

test.each([Buffer.alloc(0), Buffer.from([200]), Buffer.alloc(32), Buffer.alloc(500, 0x6b)])(
  '%j is no hash',
  (bytes) => {
    expect(new KeyedHashes([k1]).matches('email', 'a', bytes)).toBe(false);
  },
);

test('a MAC covers each field, its place and its type', () => {
  const macs = new Macs(new KeyedHashes([k1]));
  const mac = macs.sign('api-key', ['1', ['a', 'b'], null]);
  expect(macs.verify('api-key', ['1', ['a', 'b'], null], mac)).toBe(true);
  for (const other of [
    [1, ['a', 'b'], null],
    ['1', ['a'], 'b', null],
    ['1', ['a', 'b'], ''],
    ['1', ['b', 'a'], null],
  ])
    expect(macs.verify('api-key', other, mac)).toBe(false);
  expect(macs.verify('session', ['1', ['a', 'b'], null], mac)).toBe(false);
  expect(macs.verify('api-key', ['1', ['a', 'b'], null], null)).toBe(false);
});
