import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { propertyRuns } from '../config/property-runs.spec-support.js';
import { Random } from '../config/random.js';
import type { SecretKey } from './keys.js';
import { SEALED_TABLES } from './sealed-columns.js';
import { openIfReadable, UnreadableValue } from './unreadable-value.js';
import { type SealedPlace, Vault, type VaultUse } from './vault.js';

const key = (id: string): SecretKey => ({ id, key: randomBytes(32) });
const [k1, k2] = [key('k1'), key('k2')];
const vault = new Vault([k1], new Random());

const name = fc.string({ maxLength: 40, unit: 'grapheme' });
const place = fc.record({ table: name, column: name, row: name });
const here = { table: 'people', column: 'profile', row: 'client/c1' };

test('a value opens in its own place', () => {
  fc.assert(
    fc.property(place, fc.string({ unit: 'grapheme' }), (where, text) => {
      expect(vault.open(where, vault.seal(where, text))).toBe(text);
    }),
    propertyRuns(),
  );
});

test('an encrypted value shows none of its text', () => {
  const sealed = vault.seal(here, 'Zoë Åkesson');
  expect(sealed.includes('Zoë')).toBe(false);
  expect(vault.seal(here, 'Zoë Åkesson').equals(sealed)).toBe(false);
});

test('a value opens in no other place, even if the names join to the same letters', () => {
  fc.assert(
    fc.property(place, place, (where, elsewhere) => {
      fc.pre(JSON.stringify(where) !== JSON.stringify(elsewhere));
      expect(() => vault.open(elsewhere, vault.seal(where, 'text'))).toThrow('cannot be decrypted');
    }),
    propertyRuns(),
  );
  const sealed = vault.seal({ table: 'ab', column: 'c', row: 'd' }, 'text');
  expect(() => vault.open({ table: 'a', column: 'bc', row: 'd' }, sealed)).toThrow('cannot be decrypted');
});

test('a value with one changed bit does not open', () => {
  const sealed = vault.seal(here, 'text');
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const bent = Buffer.from(sealed);
    bent.writeUInt8(bent.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(() => vault.open(here, bent)).toThrow();
  }
});

test('a value that was cut short does not open', () => {
  const sealed = vault.seal(here, 'text');
  for (let length = 0; length < sealed.length; length++) {
    expect(() => vault.open(here, sealed.subarray(0, length))).toThrow(/cannot be decrypted|lacks the key/);
  }
});

test('another key of the same name fails with an error that names the column, not the content', () => {
  const impostor = new Vault([key('k1')], new Random());
  expect(() => impostor.open(here, vault.seal(here, 'Zoë'))).toThrow(
    'An encrypted value of people.profile cannot be decrypted, because it was changed, moved or truncated. Restore its row, which the log names, from a backup.',
  );
});

test('after a rotation the new first key seals and the old one still opens', () => {
  const rotated = new Vault([k2, k1], new Random());
  expect(rotated.open(here, vault.seal(here, 'old'))).toBe('old');
  const sealed = rotated.seal(here, 'new');
  expect(rotated.open(here, sealed)).toBe('new');
  const lacking = new Vault([k1], new Random());
  expect(lacking.health()).toEqual({ status: 'ok' });
  expect(() => lacking.open(here, sealed)).toThrow('DATA_KEYS lacks the key k2, which encrypted people.profile');
  expect(lacking.health()).toMatchObject({ status: 'degraded', reasons: [{ values: { keys: 'k2' } }] });
});

test('every value gets its own nonce from the source of randomness', () => {
  class Counted extends Random {
    private drawn = 0;

    override bytes(count: number): Buffer {
      const bytes = Buffer.alloc(count);
      for (let at = 0; at + 4 <= count; at += 4) bytes.writeUInt32BE(this.drawn++, at);
      return bytes;
    }
  }
  const counted = new Vault([k1], new Counted());
  const nonces = Array.from({ length: 3_000 }, () => counted.seal(here, '').subarray(4, 16).toString('hex'));
  expect(new Set(nonces).size).toBe(3_000);
  expect(nonces[1]).toBe('000000030000000400000005');
});

test('a value that does not open is counted, named once, and degrades health until it opens', () => {
  const reports: unknown[] = [];
  const onUnreadable: VaultUse['onUnreadable'] = ({ row }, cause, isNew) => reports.push([row, cause, isNew]);
  const watched = new Vault([k1], new Random(), { onUnreadable });
  const sealed = watched.seal(here, 'Zoë');
  const elsewhere = { ...here, row: 'client/c2' };
  for (let times = 0; times < 2; times++) expect(() => watched.open(elsewhere, sealed)).toThrow(UnreadableValue);
  expect(reports).toEqual([
    ['client/c2', 'damaged', true],
    ['client/c2', 'damaged', false],
  ]);
  expect(watched.health()).toMatchObject({ status: 'degraded', reasons: [{ values: { count: 1 } }] });
  watched.open(elsewhere, watched.seal(elsewhere, 'Zoë'));
  expect(watched.health()).toEqual({ status: 'ok' });
});

test('a tampered, swapped or truncated value never opens, and is counted', () => {
  let counted = 0;
  const watched = new Vault([k1, k2], new Random(), { onUnreadable: () => counted++ });
  const places = Object.entries(SEALED_TABLES).flatMap(([table, { columns }]) =>
    Object.entries(columns).flatMap(([column, place]) =>
      ['row-1', 'row-2'].map((row) => ({ table: place.table ?? table, column: place.column ?? column, row })),
    ),
  );
  const values = places.map((where) => ({ where, sealed: watched.seal(where, `secret of ${where.row}`) }));
  const one = fc.constantFrom(...values);
  const bent = fc.tuple(one, fc.nat()).map(([{ where, sealed }, at]) => {
    const bytes = Buffer.from(sealed);
    const bit = at % (bytes.length * 8);
    bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    return { where, sealed: bytes };
  });
  const swapped = fc.tuple(one, one).map(([{ where }, { where: from, sealed }]) => ({ where, sealed, from }));
  const cut = fc.tuple(one, fc.nat()).map(([{ where, sealed }, at]) => {
    return { where, sealed: sealed.subarray(0, at % sealed.length) };
  });
  const longer = fc.tuple(one, fc.uint8Array({ minLength: 1, maxLength: 40 })).map(([{ where, sealed }, more]) => {
    return { where, sealed: Buffer.concat([sealed, more]) };
  });
  let tried = 0;
  fc.assert(
    fc.property(fc.oneof(bent, swapped, cut, longer), (forged) => {
      fc.pre(!('from' in forged) || nameOf(forged.from) !== nameOf(forged.where));
      tried += 1;
      expect(openIfReadable(() => watched.open(forged.where, forged.sealed))).toBeUndefined();
      expect(counted).toBe(tried);
    }),
    propertyRuns(),
  );
  expect(counted).toBe(propertyRuns().numRuns);
});

test('the registry and docs/security.md name every encrypted column of the schema; other bytes are fingerprints', () => {
  const sealed: string[] = [];
  const others: string[] = [];
  const schema = readFileSync('prisma/schema.prisma', 'utf8');
  for (const [, body = ''] of schema.matchAll(/^model \w+ \{([\s\S]*?)^\}/gm)) {
    const table = /@@map\("(\w+)"\)/.exec(body)?.[1];
    for (const line of body.split('\n').filter((text) => /^\s+\w+\s+Bytes\b/.test(text))) {
      const column = /@map\("(\w+)"\)/.exec(line)?.[1] ?? /\w+/.exec(line)?.[0];
      (/\/\/\/ sealed\b/.test(line) ? sealed : others).push(`${table}.${column}`);
    }
  }
  const known = Object.entries(SEALED_TABLES).flatMap(([table, { columns }]) =>
    Object.keys(columns).map((column) => `${table}.${column}`),
  );
  expect(sealed.sort()).toEqual(known.sort());
  const documented = readFileSync('docs/security.md', 'utf8');
  expect(known.filter((column) => !documented.includes(`\`${column}\``))).toEqual([]);
  expect(
    others.filter(
      (name) => !/(hash|fingerprint|signature|unsettled_email|macs?|audit_links\.(previous|former))$/.test(name),
    ),
  ).toEqual([]);
});

const nameOf = (where: SealedPlace) => JSON.stringify(where);

test('a vault needs at least one key', () => {
  expect(() => new Vault([], new Random())).toThrow('DATA_KEYS holds no key; add one as id:base64.');
});
