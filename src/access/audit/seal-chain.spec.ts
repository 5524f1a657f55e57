import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { BEFORE_THE_FIRST, ChainVerifier, type Mac, type Seal, type SealedEntry, sealBatch } from './seal-chain.js';

const mac: Mac = (purpose, value) => createHmac('sha256', 'k').update(`${purpose}\0${value}`).digest();

const entry = (id: number): SealedEntry => ({
  ...{ id: String(id), at: '2026-11-23T08:00:00.000Z', keyId: 'admin', keyName: 'admin', action: 'GET /v1/clients' },
  ...{ onBehalfOf: null, purpose: null, outcome: 'ok', requestId: `r-${id}`, source: '127.0.0.1', counts: null },
  subjects: [
    ['client', `C-${id}`],
    ['provider', 'P-1'],
  ],
});

/** Entries 1, 2, 3 … in batches, and their seals. */
function chainOf(sizes: number[]): { seals: Seal[]; entries: Map<string, SealedEntry> } {
  const entries = new Map<string, SealedEntry>();
  const seals: Seal[] = [];
  for (const [position, size] of sizes.entries()) {
    const batch = Array.from({ length: size }, (_, at) => entry(entries.size + 1 + at));
    for (const one of batch) entries.set(one.id, one);
    const about = { no: String(position + 1), at: '2026-11-23T08:00:01.000Z' };
    const ids = batch.map(({ id }) => id);
    seals.push(sealBatch(mac, about, ids, batch, seals.at(-1)?.mac ?? BEFORE_THE_FIRST));
  }
  return { seals, entries };
}

function verified(seals: readonly Seal[], entries: ReadonlyMap<string, SealedEntry>): ChainVerifier {
  const verifier = new ChainVerifier(mac);
  for (const seal of seals) {
    verifier.next(
      seal,
      seal.entries.flatMap((id) => entries.get(id) ?? []),
    );
  }
  return verifier;
}

const sizes = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 2, maxLength: 6 });

test('a trail that nobody touched has no fault, and its head names the last seal', () => {
  fc.assert(
    fc.property(sizes, (batches) => {
      const { seals, entries } = chainOf(batches);
      const verifier = verified(seals, entries);
      expect(verifier.faults).toEqual([]);
      expect(verifier.head).toBe(`${seals.length}:${seals.at(-1)?.mac.toString('hex')}`);
      expect(verifier.covers(String(entries.size))).toBe(true);
      expect(verifier.covers(String(entries.size + 1))).toBe(false);
    }),
    propertyRuns(0.05),
  );
});

test('the order in which subjects are read is no change', () => {
  const { seals, entries } = chainOf([1, 1]);
  const turned = new Map([...entries].map(([id, one]) => [id, { ...one, subjects: [...one.subjects].reverse() }]));
  expect(verified(seals, turned).faults).toEqual([]);
});

const CHANGES: ((one: SealedEntry) => SealedEntry)[] = [
  (one) => ({ ...one, keyId: 'other' }),
  (one) => ({ ...one, keyName: `${one.keyName} ` }),
  (one) => ({ ...one, at: '2026-11-23T08:00:00.001Z' }),
  (one) => ({ ...one, onBehalfOf: 'u-1' }),
  (one) => ({ ...one, purpose: 'p' }),
  (one) => ({ ...one, action: 'GET /v1/client' }),
  (one) => ({ ...one, outcome: 'forbidden-scope' }),
  (one) => ({ ...one, requestId: null }),
  (one) => ({ ...one, source: '10.0.0.1' }),
  (one) => ({ ...one, counts: { client: 51 } }),
  (one) => ({ ...one, subjects: one.subjects.slice(1) }),
  (one) => ({ ...one, subjects: [...one.subjects, ['session', 's']] }),
];

test('an entry that was changed in any of its parts is named, and no other', () => {
  fc.assert(
    fc.property(sizes, fc.nat(), fc.nat(CHANGES.length - 1), (batches, which, how) => {
      const { seals, entries } = chainOf(batches);
      const id = String(1 + (which % entries.size));
      const found = entries.get(id);
      if (found) entries.set(id, CHANGES[how]?.(found) ?? found);
      expect(verified(seals, entries).faults).toEqual([{ entry: id, seal: expect.any(String), fault: 'changed' }]);
    }),
    propertyRuns(0.1),
  );
});

test('an entry that was removed is named; two that were swapped are both named', () => {
  fc.assert(
    fc.property(sizes, fc.nat(), (batches, which) => {
      const { seals, entries } = chainOf(batches);
      const [one, two] = [String(1 + (which % entries.size)), String(1 + ((which + 1) % entries.size))];
      const [first, second] = [entries.get(one), entries.get(two)];
      if (!first || !second) throw new Error('no such entry');
      const swapped = new Map(entries).set(one, { ...second, id: one }).set(two, { ...first, id: two });
      const named = verified(seals, swapped).faults.map(({ entry: id, fault }) => `${id} ${fault}`);
      expect(new Set(named)).toEqual(new Set([`${one} changed`, `${two} changed`]));
      entries.delete(one);
      expect(verified(seals, entries).faults).toMatchObject([{ entry: one, fault: 'removed' }]);
    }),
    propertyRuns(0.05),
  );
});

test('a seal that was removed, changed or forged without the key is named', () => {
  const { seals, entries } = chainOf([2, 2, 2]);
  const [one, two, three] = seals as [Seal, Seal, Seal];
  expect(verified([one, three], entries).faults).toEqual([{ seal: '2', fault: 'removed' }]);
  expect(verified([one, { ...two, at: '2026-11-23T09:00:00.000Z' }, three], entries).faults).toEqual([
    { seal: '2', fault: 'changed' },
  ]);
  const shorter = { ...two, entries: two.entries.slice(1), macs: two.macs.subarray(32) };
  expect(verified([one, shorter, three], entries).faults).toEqual([{ seal: '2', fault: 'changed' }]);
  const swapped = [{ ...two, no: '1' }, { ...one, no: '2' }, three];
  expect(verified(swapped, entries).faults.map(({ seal }) => seal)).toEqual(['1', '2', '3']);
});

test('an entry that was gone before it was sealed is told for ever', () => {
  const { entries } = chainOf([3]);
  const [, second, third] = [...entries.values()];
  const about = { no: '1', at: '2026-11-23T08:00:01.000Z' };
  const seal = sealBatch(mac, about, ['1', '2', '3'], [second, third] as SealedEntry[], BEFORE_THE_FIRST);
  entries.delete('1');
  expect(verified([seal], entries).faults).toEqual([{ entry: '1', seal: '1', fault: 'removed' }]);
});

test('an entry that two seals cover is named', () => {
  const { entries } = chainOf([2]);
  const all = [...entries.values()];
  const one = sealBatch(mac, { no: '1', at: 't' }, ['1', '2'], all, BEFORE_THE_FIRST);
  const two = sealBatch(mac, { no: '2', at: 't' }, ['2'], all, one.mac);
  expect(verified([one, two], entries).faults).toEqual([{ entry: '2', seal: '2', fault: 'sealed-twice' }]);
});
