import type { AuditResponse } from './audit.dto.js';

/** An entry of the audit log with everything that its seal covers. */
export interface SealedEntry extends Omit<AuditResponse, 'at' | 'subjects'> {
  /** RFC 3339 in milliseconds, UTC. */
  at: string;
  subjects: [kind: string, id: string][];
}

/** A seal over a batch of entries. */
export interface Seal {
  /** A bigint as a decimal text; without gaps. */
  no: string;
  at: string;
  /** Ids of the entries, in order. */
  entries: string[];
  /** A mac of 32 bytes for each of them, in the same order. */
  macs: Buffer;
  mac: Buffer;
}

/** A keyed hash of 32 bytes, separate for each purpose. The database does not hold its key in plain text. */
export type Mac = (purpose: string, value: string) => Buffer;

/** Bytes of one mac: HMAC-SHA-256 (RFC 2104). */
const MAC_BYTES = 32;

/** The mac that the first seal continues. */
export const BEFORE_THE_FIRST = Buffer.alloc(MAC_BYTES);

/** The mac of an entry that was removed before it was sealed. */
const REMOVED = Buffer.alloc(MAC_BYTES);

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The text of an entry, the same for any order in which its subjects and counts are read. */
function entryText({ subjects, counts, ...entry }: SealedEntry): string {
  const { id, at, keyId, keyName, onBehalfOf, purpose, action, outcome, requestId, source } = entry;
  const pairs = [...subjects].sort((a, b) => byText(a[0], b[0]) || byText(a[1], b[1]));
  const numbers = Object.entries(counts ?? {}).sort((a, b) => byText(a[0], b[0]));
  return JSON.stringify([
    ...[id, at, keyId, keyName, onBehalfOf, purpose, action, outcome, requestId, source],
    ...[pairs, numbers],
  ]);
}

/**
 * Seals a batch of entries onto a chain.
 *
 * @param ids of all unsealed entries, in order; the seal records an id without its entry as removed
 * @param previous the mac of the previous seal
 */
export function sealBatch(
  mac: Mac,
  { no, at }: Pick<Seal, 'no' | 'at'>,
  ids: string[],
  entries: readonly SealedEntry[],
  previous: Buffer,
): Seal {
  const found = new Map(entries.map((entry) => [entry.id, entry]));
  const macs = Buffer.concat(ids.map((id) => macOfEntry(mac, found.get(id))));
  const seal = { no, at, entries: ids, macs };
  return { ...seal, mac: macOfSeal(mac, seal, previous) };
}

function macOfEntry(mac: Mac, entry: SealedEntry | undefined): Buffer {
  return entry ? mac('audit-entry', entryText(entry)) : REMOVED;
}

function macOfSeal(mac: Mac, { no, at, entries, macs }: Omit<Seal, 'mac'>, previous: Buffer): Buffer {
  return mac('audit-seal', JSON.stringify([no, at, entries, macs.toString('hex'), previous.toString('hex')]));
}

/** A fault of the audit log, and the row that it is in. */
export interface TrailFault {
  entry?: string;
  seal?: string;
  fault: 'changed' | 'removed' | 'inserted' | 'sealed-twice';
}

/**
 * Verifies the chain seal by seal, and each entry against its mac.
 *
 * The ids of sealed entries are kept as bits: one megabyte for eight million entries.
 */
export class ChainVerifier {
  readonly faults: TrailFault[] = [];
  private readonly sealed = new Map<bigint, Uint8Array>();
  private last: Pick<Seal, 'no' | 'mac'>;

  /** @param before number and mac of the last removed seal */
  constructor(
    private readonly mac: Mac,
    before: Pick<Seal, 'no' | 'mac'> = { no: '0', mac: BEFORE_THE_FIRST },
  ) {
    this.last = before;
  }

  /** The newest seal so far, in the form of the option `--head`. */
  get head(): string {
    return `${this.last.no}:${this.last.mac.toString('hex')}`;
  }

  /** Verifies the next seal. @param entries the existing entries of the seal */
  next(seal: Seal, entries: readonly SealedEntry[]): void {
    const expected = BigInt(this.last.no) + 1n;
    for (let missing = expected; missing < BigInt(seal.no); missing++) {
      this.faults.push({ seal: String(missing), fault: 'removed' });
    }
    const follows = BigInt(seal.no) === expected;
    if (BigInt(seal.no) < expected) this.faults.push({ seal: seal.no, fault: 'inserted' });
    if (follows && !macOfSeal(this.mac, seal, this.last.mac).equals(seal.mac)) {
      this.faults.push({ seal: seal.no, fault: 'changed' });
    }
    this.checkEntries(seal, entries);
    this.last = seal;
  }

  /** True if one of the seals so far covers the entry. */
  covers(id: string): boolean {
    const { page, byte, bit } = placeOf(id);
    return ((this.sealed.get(page)?.[byte] ?? 0) & bit) !== 0;
  }

  private checkEntries(seal: Seal, entries: readonly SealedEntry[]): void {
    const found = new Map(entries.map((entry) => [entry.id, entry]));
    for (const [position, id] of seal.entries.entries()) {
      const mac = seal.macs.subarray(position * MAC_BYTES, (position + 1) * MAC_BYTES);
      const entry = found.get(id);
      if (this.covers(id)) this.faults.push({ entry: id, seal: seal.no, fault: 'sealed-twice' });
      this.cover(id);
      if (!entry) this.faults.push({ entry: id, seal: seal.no, fault: 'removed' });
      else if (!macOfEntry(this.mac, entry).equals(mac))
        this.faults.push({ entry: id, seal: seal.no, fault: 'changed' });
    }
  }

  private cover(id: string): void {
    const { page, byte, bit } = placeOf(id);
    const bits = this.sealed.get(page) ?? new Uint8Array(PAGE_BYTES);
    bits[byte] = (bits[byte] ?? 0) | bit;
    this.sealed.set(page, bits);
  }
}

const PAGE_BYTES = 8_192;
const PAGE_IDS = BigInt(PAGE_BYTES * 8);

function placeOf(id: string): { page: bigint; byte: number; bit: number } {
  const within = Number(BigInt(id) % PAGE_IDS);
  return { page: BigInt(id) / PAGE_IDS, byte: within >> 3, bit: 1 << (within & 7) };
}
