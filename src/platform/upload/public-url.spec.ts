import fc from 'fast-check';
import { checkPublicUrl, isUsableAddress } from './public-url.js';

const seed = Number(process.env.SEED);
const closed = { privateHostsAllowed: false };
const open = { privateHostsAllowed: true };

/** The spellings of one IPv4 address that a URL parser or a resolver might read. */
function spellings([a, b, c, d]: [number, number, number, number]): string[] {
  const word = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
  const hex = (value: number) => value.toString(16).padStart(2, '0');
  const groups = `${hex(a)}${hex(b)}:${hex(c)}${hex(d)}`;
  return [
    `${a}.${b}.${c}.${d}`,
    `${a}.${b}.${c}.${d}.`,
    `${word}`,
    `0x${word.toString(16)}`,
    `0${word.toString(8)}`,
    `0x${hex(a)}.0x${hex(b)}.0x${hex(c)}.0x${hex(d)}`,
    `0${a.toString(8)}.0${b.toString(8)}.0${c.toString(8)}.0${d.toString(8)}`,
    `${a}.${b}.${(c << 8) | d}`,
    `${a}.${(b << 16) | (c << 8) | d}`,
    `[::ffff:${a}.${b}.${c}.${d}]`,
    `[::ffff:${groups}]`,
    `[::${groups}]`,
    `[::ffff:0:${groups}]`,
    `[64:ff9b::${groups}]`,
    `[64:ff9b:1::${groups}]`,
    `[2002:${groups}::1]`,
    `[2001:0:${groups}::1]`,
  ];
}

const privateV4 = fc.oneof(
  fc.tuple(fc.constant(127), fc.nat(255), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(10), fc.nat(255), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(192), fc.constant(168), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(169), fc.constant(254), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.constant(0), fc.nat(255), fc.nat(255), fc.nat(255)),
  fc.tuple(fc.integer({ min: 224, max: 255 }), fc.nat(255), fc.nat(255), fc.nat(255)),
);

describe('an address that someone outside hands in', () => {
  it('may be https with a public host', () => {
    for (const url of ['https://files.example.com/a?b=c', 'https://8.8.8.8/', 'https://[2606:4700::1111]:8443/x']) {
      expect([url, checkPublicUrl(url, closed)]).toEqual([url, undefined]);
    }
  });

  it('is refused for a private IPv4 address in any notation', () => {
    fc.assert(
      fc.property(privateV4, (address) => {
        for (const host of spellings(address as [number, number, number, number])) {
          expect([host, checkPublicUrl(`https://${host}/`, closed)]).not.toEqual([host, undefined]);
        }
      }),
      { seed, numRuns: 300 },
    );
  });

  it.each([
    ['http://files.example.com/', 'must begin with https://'],
    ['ftp://files.example.com/', 'must begin with https://'],
    ['file:///etc/passwd', 'must begin with https://'],
    ['https://user@files.example.com/', 'must hold no user name or password'],
    ['https://:secret@files.example.com/', 'must hold no user name or password'],
    ['https://files.example.com\\@10.0.0.1/', 'must be a complete address such as https://host/path'],
    ['https://files.example.com/a b', 'must be a complete address such as https://host/path'],
    ['/relative', 'must be a complete address such as https://host/path'],
    ['https://localhost/', 'must name a public host'],
    ['https://LOCALHOST./', 'must name a public host'],
    ['https://a.localhost/', 'must name a public host'],
    ['https://database/', 'must name a public host'],
    ['https://metadata.google.internal/', 'must name a public host'],
    ['https://printer.local/', 'must name a public host'],
    ['https://[::]/', 'must name a public host'],
    ['https://[::1]/', 'must name a public host'],
    ['https://[fe80::1]/', 'must name a public host'],
    ['https://[fc00::1]/', 'must name a public host'],
    ['https://[fd12:3456::1]/', 'must name a public host'],
    ['https://[fec0::1]/', 'must name a public host'],
    ['https://[ff02::1]/', 'must name a public host'],
    ['https://[2001:db8::1]/', 'must name a public host'],
    ['https://[100::1]/', 'must name a public host'],
    ['https://[4000::1]/', 'must name a public host'],
    ['https://\u2460\u2461\u2466.0.0.1/', 'must name a public host'],
    ['https://127。0。0。1/', 'must name a public host'],
  ])('%s: %s', (url, fault) => {
    expect(checkPublicUrl(url, closed)).toBe(fault);
  });

  it('may be on the own network where that is allowed, but never link-local', () => {
    for (const url of [
      'http://127.0.0.1:9000/x',
      'http://localhost/',
      'https://10.1.2.3/',
      'http://[::1]/',
      'http://storage/',
    ]) {
      expect([url, checkPublicUrl(url, open)]).toEqual([url, undefined]);
    }
    for (const url of ['http://169.254.169.254/', 'http://[fe80::1]/', 'http://0.0.0.0/', 'http://a:b@127.0.0.1/']) {
      expect([url, checkPublicUrl(url, open)]).not.toEqual([url, undefined]);
    }
  });
});

describe('an address that a name resolved to', () => {
  it('is judged as what it wraps', () => {
    expect(
      ['::ffff:10.0.0.1', '::ffff:127.0.0.1', 'fe80::1%eth0', 'nonsense'].map((text) => isUsableAddress(text, closed)),
    ).toEqual([...[false, false, false, false]]);
    expect(isUsableAddress('::ffff:8.8.8.8', closed)).toBe(true);
  });
});
