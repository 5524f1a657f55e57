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
  it('hands on public addresses, in the form that was asked for', async () => {
    const addresses = [v4('8.8.8.8'), v4('9.9.9.9')];
    expect(await ask(resolving(addresses), true)).toEqual({ address: addresses, family: undefined });
    expect(await ask(resolving(addresses), false)).toEqual({ address: '8.8.8.8', family: 4 });
  });

  it('refuses a name of which any address is private', async () => {
    expect(await ask(resolving([v4('8.8.8.8'), v4('10.0.0.1')]), true)).toBe(ADDRESS_NOT_PUBLIC);
    expect(await ask(resolving([{ address: '::ffff:169.254.169.254', family: 6 }]), false)).toBe(ADDRESS_NOT_PUBLIC);
    expect(await ask(resolving([]), true)).toBe(ADDRESS_NOT_PUBLIC);
  });

  it('judges every answer anew, so that a name that changes its address gains nothing', async () => {
    const resolve = resolving([v4('8.8.8.8')], [v4('127.0.0.1')]);
    const lookup = guardedLookup(closed, resolve);
    expect(await ask(resolve, false, lookup)).toEqual({ address: '8.8.8.8', family: 4 });
    expect(await ask(resolve, false, lookup)).toBe(ADDRESS_NOT_PUBLIC);
  });

  it("hands on the resolver's own error", async () => {
    const failing: ResolveAll = (_hostname, _options, done) =>
      done(Object.assign(new Error(), { code: 'ENOTFOUND' }), []);
    expect(await ask(failing, true)).toBe('ENOTFOUND');
  });
});
