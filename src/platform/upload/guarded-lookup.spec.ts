import dns, { type LookupAddress } from 'node:dns';
import { ADDRESS_NOT_PUBLIC, guardedLookup } from './public-url.js';

const v4 = (address: string) => ({ address, family: 4 });

/** Asks the guarded lookup once for each of these answers of the system. */
async function ask(all: boolean, ...answers: LookupAddress[][]): Promise<unknown[]> {
  const lookup = guardedLookup({ privateHostsAllowed: false });
  const system = (_name: string, _options: object, done: (error: null, found?: LookupAddress[]) => void) =>
    done(null, answers.shift());
  jest.spyOn(dns, 'lookup').mockImplementation(system as typeof dns.lookup);
  const outcomes: unknown[] = [];
  while (answers.length > 0) {
    lookup('files.example.com', { all }, (error, address, family) => outcomes.push(error?.code ?? { address, family }));
  }
  return outcomes;
}

describe('the lookup of a guarded connection', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('returns public addresses in the requested form', async () => {
    const addresses = [v4('8.8.8.8'), v4('9.9.9.9')];
    expect(await ask(true, addresses)).toEqual([{ address: addresses, family: undefined }]);
    expect(await ask(false, addresses)).toEqual([{ address: '8.8.8.8', family: 4 }]);
  });

  it('rejects a name with any private address', async () => {
    const privates = [[v4('8.8.8.8'), v4('10.0.0.1')], [{ address: '::ffff:169.254.169.254', family: 6 }], []];
    expect(await ask(true, ...privates)).toEqual(privates.map(() => ADDRESS_NOT_PUBLIC));
  });

  it('checks every answer, so that a name cannot change its address', async () => {
    const answers = [[v4('8.8.8.8')], [v4('127.0.0.1')]];
    expect(await ask(false, ...answers)).toEqual([{ address: '8.8.8.8', family: 4 }, ADDRESS_NOT_PUBLIC]);
  });

  it("passes on the resolver's error", async () => {
    const failing = (_name: string, _options: object, done: (error: Error) => void) =>
      done(Object.assign(new Error(), { code: 'ENOTFOUND' }));
    jest.spyOn(dns, 'lookup').mockImplementation(failing as typeof dns.lookup);
    const code = await new Promise((resolve) => {
      guardedLookup({ privateHostsAllowed: false })('files.example.com', {}, (error) => resolve(error?.code));
    });
    expect(code).toBe('ENOTFOUND');
  });
});
