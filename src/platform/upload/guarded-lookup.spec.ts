import type { LookupAddress } from 'node:dns';
import { ADDRESS_NOT_PUBLIC, guardedLookup } from './public-url.js';

type ResolveAll = NonNullable<Parameters<typeof guardedLookup>[1]>;

const closed = { privateHostsAllowed: false };
const resolving =
  (...answers: LookupAddress[][]): ResolveAll =>
  (_hostname, _options, done) =>
    done(null, answers.shift() ?? []);
const v4 = (address: string) => ({ address, family: 4 });

function ask(resolve: ResolveAll, all: boolean, lookup = guardedLookup(closed, resolve)) {
  return new Promise((settle) => {
    lookup('files.example.com', { all }, (error, address, family) => settle(error?.code ?? { address, family }));
  });
}

describe('the lookup of a guarded connection', () => {
  it('returns public addresses in the requested form', async () => {
    const addresses = [v4('8.8.8.8'), v4('9.9.9.9')];
    expect(await ask(resolving(addresses), true)).toEqual({ address: addresses, family: undefined });
    expect(await ask(resolving(addresses), false)).toEqual({ address: '8.8.8.8', family: 4 });
  });

  it('rejects a name with any private address', async () => {
    expect(await ask(resolving([v4('8.8.8.8'), v4('10.0.0.1')]), true)).toBe(ADDRESS_NOT_PUBLIC);
    expect(await ask(resolving([{ address: '::ffff:169.254.169.254', family: 6 }]), false)).toBe(ADDRESS_NOT_PUBLIC);
    expect(await ask(resolving([]), true)).toBe(ADDRESS_NOT_PUBLIC);
  });

  it('checks every answer, so that a name cannot change its address', async () => {
    const resolve = resolving([v4('8.8.8.8')], [v4('127.0.0.1')]);
    const lookup = guardedLookup(closed, resolve);
    expect(await ask(resolve, false, lookup)).toEqual({ address: '8.8.8.8', family: 4 });
    expect(await ask(resolve, false, lookup)).toBe(ADDRESS_NOT_PUBLIC);
  });

  it("passes on the resolver's error", async () => {
    const failing: ResolveAll = (_hostname, _options, done) =>
      done(Object.assign(new Error(), { code: 'ENOTFOUND' }), []);
    expect(await ask(failing, true)).toBe('ENOTFOUND');
  });
});
