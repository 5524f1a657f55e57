import { randomBytes } from 'node:crypto';
import { Random } from '../../config/random.js';
import { Fingerprints } from '../../vault/fingerprints.js';
import { Vault } from '../../vault/vault.js';
import { ProfileSeal } from './profile.js';

const vault = new Vault([{ id: 'k1', key: randomBytes(32) }], new Random());
const seal = new ProfileSeal(vault, new Fingerprints([{ id: 'f1', key: randomBytes(32) }]));
const person = { id: 'a' };
const profile = { email: 'Zoë@Example.org', firstName: 'Zoë', lastName: 'Åkesson' };

test('a sealed profile opens only for the same person', () => {
  const sealed = seal.seal(person, profile);
  expect(seal.open(person, sealed)).toEqual(profile);
  expect(() => seal.open({ id: 'b' }, sealed)).toThrow('cannot be decrypted');
});

test('a sealed profile opens under every external id of its person', () => {
  const sealed = seal.seal({ ...person, externalId: 'old' } as typeof person, profile);
  expect(seal.open({ ...person, externalId: 'new' } as typeof person, sealed)).toEqual(profile);
});

test('spellings of an email that differ in case, outer spaces or Unicode form are equal', () => {
  for (const spelling of ['zoë@example.org', ' ZOË@EXAMPLE.ORG ', 'zoe\u0308@example.org']) {
    expect(seal.emailFingerprint(spelling)).toEqual(seal.emailFingerprint(profile.email));
  }
  expect(seal.emailFingerprint(undefined)).toBeNull();
});

test('the hash of a profile depends on each field and on their boundaries', () => {
  const hash = seal.hash(profile);
  expect(seal.hash({ ...profile })).toEqual(hash);
  for (const change of [{ email: undefined }, { firstName: 'Zoe' }, { lastName: 'Akesson' }]) {
    expect(seal.hash({ ...profile, ...change })).not.toEqual(hash);
  }
  const together = seal.hash({ firstName: 'ab', lastName: 'c' });
  expect(seal.hash({ firstName: 'a', lastName: 'bc' })).not.toEqual(together);
});
