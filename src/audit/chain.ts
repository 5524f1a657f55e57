import type { MacFields, Macs } from '../vault/macs.js';
import type { KeptSubjects } from './audit-record.js';

/** All fields of an entry, in the form that its MAC covers. */
export interface SignedEntry extends KeptSubjects {
  /** 32 hexadecimal digits, random: no two MACs are equal, so a copy shows. */
  uid: string;
  /** The time of the process that made it: RFC 3339 in milliseconds, UTC. */
  at: string;
  keyId: string;
  keyName: string;
  issuer: string | null;
  onBehalfOf: string | null;
  purpose: string | null;
  action: string;
  outcome: string;
  requestId: string | null;
  source: string | null;
  filter: Record<string, string> | null;
}

/** An entry of the audit log with its place and its MAC. */
export interface StoredEntry extends SignedEntry {
  id: string;
  mac: Buffer;
}

/** A batch of entries that continues the chain. */
export interface Link {
  /** A bigint as decimal text; without gaps, from 1. */
  no: string;
  /** The time of the worker that made it. */
  at: string;
  /** Ids of the entries. */
  entries: string[];
  /** The MAC of each entry; null for one that had no valid MAC, or was removed before it was linked. */
  macs: (Buffer | null)[];
  /** The MAC of the previous link. */
  previous: Buffer;
  /** The MACs of this link by earlier keys, so that heads from before a rotation are found. */
  former: Buffer[];
  mac: Buffer;
}

/** The removal of the oldest links by the retention. */
export interface Cut {
  /** The number of the last removed link. */
  upTo: string;
  at: string;
  /** The time of the last removed link. */
  linkedAt: string;
  /** How many entries were removed. */
  entries: number;
  /** The MAC of the last removed link, and its former ones. */
  macs: Buffer[];
  mac: Buffer;
}

/** The predecessor of the first link. */
export const BEGINNING = Buffer.from('beginning');

/** Maximum difference between the time of an entry and that of its link. */
const MAX_DIFFERENCE_MS = 5 * 60_000;

const DAY_MS = 86_400_000;

/** Minimum age in days of what a cut removes; `prune_audit` enforces it, too. */
const MIN_RETENTION_DAYS = 365;

/** The same for any order in which the parts are read. */
const sorted = (parts: readonly unknown[]): string[] => parts.map((part) => JSON.stringify(part)).sort();

const hex = (mac: Buffer | null): string | null => mac?.toString('hex') ?? null;

function entryFields(entry: SignedEntry): MacFields {
  const { uid, at, keyId, keyName, issuer, onBehalfOf, purpose, action, outcome, requestId, source } = entry;
  return [
    ...[uid, at, keyId, keyName, issuer, onBehalfOf, purpose, action, outcome, requestId, source],
    ...[sorted(Object.entries(entry.filter ?? {})), sorted(entry.subjects), sorted(entry.ranges)],
  ];
}

const linkFields = ({ no, at, entries, macs, previous, former }: Omit<Link, 'mac'>): MacFields => [
  ...[no, at, entries, macs.map(hex), hex(previous), former.map(hex)],
];

const cutFields = ({ upTo, at, linkedAt, entries, macs }: Omit<Cut, 'mac'>): MacFields => [
  ...[upTo, at, linkedAt, entries, macs.map(hex)],
];

export const signEntry = (macs: Macs, entry: SignedEntry): Buffer => macs.sign('audit-entry', entryFields(entry));

export const isEntryOf = (macs: Macs, entry: SignedEntry, mac: Buffer | null): boolean =>
  macs.verify('audit-entry', entryFields(entry), mac);

export const signLink = (macs: Macs, link: Omit<Link, 'mac'>): Link => ({
  ...link,
  mac: macs.sign('audit-link', linkFields(link)),
});

export const isSignedLink = (macs: Macs, link: Link): boolean => macs.verify('audit-link', linkFields(link), link.mac);

export const signCut = (macs: Macs, cut: Omit<Cut, 'mac'>): Cut => ({
  ...cut,
  mac: macs.sign('audit-cut', cutFields(cut)),
});

export const isSignedCut = (macs: Macs, cut: Cut): boolean => macs.verify('audit-cut', cutFields(cut), cut.mac);

/** True if the time of the last removed link allowed a cut. */
export const isOldEnough = ({ at, linkedAt }: Pick<Cut, 'at' | 'linkedAt'>, days = MIN_RETENTION_DAYS): boolean =>
  Date.parse(at) - Date.parse(linkedAt) >= days * DAY_MS;

/** True if a link continues another, whose MAC a rotation may have renewed. */
export const continues = (link: Link, macs: readonly Buffer[]): boolean =>
  macs.some((mac) => mac.equals(link.previous));

/** A link, or the rest of one after a cut, as stored elsewhere. */
export const headOf = (no: string, mac: Buffer): string => `${no}:${mac.toString('hex')}`;

/**
 * Links entries to a chain, by the first key. An entry without a valid MAC is named, but nothing vouches for it.
 *
 * @param ids of the entries, including removed ones
 */
export function linkEntries(
  macs: Macs,
  place: Pick<Link, 'no' | 'at' | 'previous'>,
  ids: string[],
  entries: readonly StoredEntry[],
): Link {
  const found = new Map(entries.map((entry) => [entry.id, entry]));
  const signed = ids.map((id) => {
    const entry = found.get(id);
    return entry && isEntryOf(macs, entry, entry.mac) ? signEntry(macs, entry) : null;
  });
  return signLink(macs, { ...place, entries: ids, macs: signed, former: [] });
}

export interface ChainFault {
  entry?: string;
  link?: string;
  cut?: string;
  head?: string;
  /** Table and id of a row that grants rights. */
  grant?: string;
  fault: 'changed' | 'removed' | 'inserted' | 'repeated' | 'misdated' | 'unsigned' | 'too-young';
}

/** Verifies a chain link by link, and each entry against its MAC in the link. */
export class ChainVerifier {
  readonly faults: ChainFault[] = [];
  /** The latest time of an intact entry in the links so far. */
  private latestMs = Number.NEGATIVE_INFINITY;

  /** @param last number and MACs of the link before the first */
  constructor(
    private readonly macs: Macs,
    private last: { no: string; macs: readonly Buffer[] } = { no: '0', macs: [BEGINNING] },
  ) {}

  /** The newest link so far. */
  get head(): string {
    return headOf(this.last.no, this.last.macs[0] ?? BEGINNING);
  }

  /** Verifies the next link. @param entries the existing entries of the link */
  next(link: Link, entries: readonly StoredEntry[]): void {
    const { no } = link;
    const expected = BigInt(this.last.no) + 1n;
    if (BigInt(no) < expected) this.faults.push({ link: no, fault: 'inserted' });
    else if (!isSignedLink(this.macs, link)) this.faults.push({ link: no, fault: 'changed' });
    else if (BigInt(no) > expected) {
      const missing = BigInt(no) - 1n;
      this.faults.push({
        link: missing === expected ? String(missing) : `${expected} to ${missing}`,
        fault: 'removed',
      });
    } else if (!continues(link, this.last.macs)) this.faults.push({ link: this.last.no, fault: 'changed' });
    const found = new Map(entries.map((entry) => [entry.id, entry]));
    const intact: number[] = [];
    for (const [position, entry] of link.entries.entries()) {
      const fault = this.faultOf(link, found.get(entry), link.macs[position] ?? null);
      if (fault) this.faults.push({ entry, link: no, fault });
      else intact.push(Date.parse(found.get(entry)?.at ?? ''));
    }
    this.latestMs = intact.reduce((latest, ms) => Math.max(latest, ms), this.latestMs);
    if (BigInt(no) >= expected) this.last = { no, macs: [link.mac, ...link.former] };
  }

  private faultOf(link: Link, entry: StoredEntry | undefined, mac: Buffer | null): ChainFault['fault'] | undefined {
    if (!entry) return 'removed';
    // A worker without the key of an entry could not vouch for it, but the entry's own MAC still does.
    if (!isEntryOf(this.macs, entry, mac ?? entry.mac)) return mac ? 'changed' : 'unsigned';
    const [atMs, linkedMs] = [Date.parse(entry.at), Date.parse(link.at)];
    if (Math.abs(linkedMs - atMs) <= MAX_DIFFERENCE_MS) return undefined;
    // While no worker ran, entries waited for their link, but so did all later ones.
    return atMs > linkedMs || this.latestMs - atMs > MAX_DIFFERENCE_MS ? 'misdated' : undefined;
  }
}
