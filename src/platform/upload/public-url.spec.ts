import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { hostileUrls, spellings } from './hostile-urls.spec-support.js';
import { checkPublicUrl, isUsableAddress } from './public-url.js';

const closed = { privateHostsAllowed: false };
const open = { privateHostsAllowed: true };

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

describe('a URL from outside', () => {
  it('may be https with a public host', () => {
    for (const url of ['https://files.example.com/a?b=c', 'https://8.8.8.8/', 'https://[2606:4700::1111]:8443/x']) {
      expect([url, checkPublicUrl(url, closed)]).toEqual([url, undefined]);
    }
  });

  it('is rejected for a private IPv4 address in any notation', () => {
    fc.assert(
      fc.property(privateV4, (address) => {
        for (const host of spellings(address as [number, number, number, number])) {
          expect([host, checkPublicUrl(`https://${host}/`, closed)]).not.toEqual([host, undefined]);
        }
      }),
      propertyRuns(),
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
    ['https://[::1]/', 'must name a public host'],
    ['https://127。0。0。1/', 'must name a public host'],
  ])('%s: %s', (url, fault) => {
    expect(checkPublicUrl(url, closed)).toBe(fault);
  });

  it('is rejected for this machine or network, and if it is not a URL', () => {
    expect(hostileUrls(443).filter((url) => checkPublicUrl(url, closed) === undefined)).toEqual([]);
  });

  it('may be on the private network if that is allowed, but never link-local', () => {
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

describe('a resolved address', () => {
  it('is checked as the IPv4 address that it wraps', () => {
    expect(
      ['::ffff:10.0.0.1', '::ffff:127.0.0.1', 'fe80::1%eth0', 'nonsense'].map((text) => isUsableAddress(text, closed)),
    ).toEqual([...[false, false, false, false]]);
    expect(isUsableAddress('::ffff:8.8.8.8', closed)).toBe(true);
  });
});
