import { setTimeout as delay } from 'node:timers/promises';
import {
  BEGINNING,
  continues,
  isEntryOf,
  isSignedCut,
  isSignedLink,
  type Link,
  signCut,
  signEntry,
  signLink,
} from '../../audit/chain.js';
import { cutsOf, entriesOf, linksAfter, renewCut, renewLink, type Sql } from '../../audit/chain.repository.js';
import { mayChangeAuditLog } from '../../database/runtime-role.js';
import { hashHeader, KeyedHashes } from '../../vault/keyed-hashes.js';
import type { SecretKey } from '../../vault/keys.js';
import { Macs } from '../../vault/macs.js';
import type { ColumnKeys, RotationUse, UnreadableRow } from '../../vault/rotation.js';
import { CliFault } from '../api/cli-fault.js';
import { ALL_GRANTS, renewMacs } from './all-grants.js';

const LINKS_PER_QUERY = 50;

/** How often to look for entries and links of the old key: workers link entries that were signed with it. */
const PASSES = 30;
const PASS_PAUSE_MS = 1_000;

/** SQL of the rows whose MACs are renewed. Once it is linked, the link has the MAC of an entry. */
const SIGNED: Record<string, string> = {
  audit_links: 'SELECT no, mac FROM audit_links',
  audit_cuts: 'SELECT up_to, mac FROM audit_cuts',
  audit_entries: 'SELECT id, mac FROM audit_entries JOIN audit_unlinked ON entry = id',
  ...Object.fromEntries(ALL_GRANTS.map(({ name }) => [name, `SELECT id, mac FROM ${name}`])),
};

/**
 * Renews MACs with the first of AUDIT_KEYS, after it has verified them. It renews one link after the other, so it can be
 * stopped and started again at any time. A link keeps its former MACs, so that heads from before are found.
 */
export class AuditRotation {
  private readonly macs: Macs;
  private readonly firstKey: string;
  /** Rows with a fault: they keep their MAC, which counts no longer. */
  private readonly faulty = new Map<string, UnreadableRow>();

  /** @param sql a connection of the tables' owner */
  constructor(
    private readonly sql: Sql,
    keys: readonly SecretKey[],
  ) {
    this.macs = new Macs(new KeyedHashes(keys));
    this.firstKey = keys[0]?.id ?? '';
  }

  /** Counts the MACs by their key, without those of faulty rows. */
  async count(): Promise<ColumnKeys[]> {
    const counted: ColumnKeys[] = [];
    for (const [table, signed] of Object.entries(SIGNED)) {
      const faulty = [...this.faulty.values()].flatMap((fault) => (fault.table === table ? fault.row : []));
      const { rows } = await this.sql.query<{ header: Buffer; count: number }>(
        `SELECT CASE WHEN octet_length(mac) > 1 THEN substring(mac FOR 1 + least(get_byte(mac, 0), 32)) ELSE '' END AS header,
           count(*)::int AS count
         FROM (${signed}) AS signed (id, mac) WHERE mac IS NOT NULL AND id::text <> ALL ($1) GROUP BY 1`,
        [faulty],
      );
      const current = hashHeader(this.firstKey);
      const stale = rows.filter(({ header }) => !header.equals(current)).reduce((sum, { count }) => sum + count, 0);
      const keys = Object.fromEntries(rows.map(({ header, count }) => [header.toString('utf8', 1) || '?', count]));
      counted.push({ table, column: 'mac', keys, stale });
    }
    return counted;
  }

  /** Renews everything, and waits until workers have linked the entries of the old key. */
  async run(use: RotationUse, passes = PASSES): Promise<void> {
    if (!(await mayChangeAuditLog(this.sql))) {
      throw new CliFault(
        'Only the owner of the tables can renew the audit log. Set DATABASE_OWNER_URL for this command.',
      );
    }
    for (let pass = 1; ; pass += 1) {
      await this.renewCuts(use);
      await this.renewLinks(use);
      for (const grants of ALL_GRANTS) use.onProgress(await renewMacs(this.sql, this.macs, grants));
      const stale = (await this.count()).filter(
        ({ table, stale }) => stale > 0 && /^audit_(links|entries)/.test(table),
      );
      if (stale.length === 0 || pass >= passes) break;
      await delay(PASS_PAUSE_MS);
    }
    for (const fault of this.faulty.values()) use.onUnreadable(fault);
  }

  private async renewCuts(use: RotationUse): Promise<void> {
    await this.sql.query(`SET notebridge.audit_rotation = 'on'`);
    for (const cut of await cutsOf(this.sql)) {
      if (!isSignedCut(this.macs, cut)) this.isFaulty('audit_cuts', cut.upTo);
      else if (!this.macs.isCurrent(cut.mac)) {
        await renewCut(this.sql, signCut(this.macs, cut));
        use.onProgress(1);
      }
    }
  }

  private async renewLinks(use: RotationUse): Promise<void> {
    const cuts = (await cutsOf(this.sql)).filter((cut) => isSignedCut(this.macs, cut));
    let last: Buffer[] = cuts.at(-1)?.macs ?? [BEGINNING];
    for (let no: string | null = null; ; ) {
      const links: Link[] = await linksAfter(this.sql, no, LINKS_PER_QUERY);
      for (const link of links) {
        let renewed = link;
        if (!isSignedLink(this.macs, link)) this.isFaulty('audit_links', link.no);
        else if (!this.macs.isCurrent(link.mac)) {
          renewed = await this.renewed(link, last);
          await renewLink(this.sql, renewed, link.mac);
          use.onProgress(1);
        }
        last = [renewed.mac, ...renewed.former];
        no = link.no;
      }
      if (links.length < LINKS_PER_QUERY) return;
    }
  }

  /** @param last the MACs of the link before */
  private async renewed(link: Link, last: Buffer[]): Promise<Link> {
    const found = new Map((await entriesOf(this.sql, link.entries)).map((entry) => [entry.id, entry]));
    const signed = link.entries.map((id, at) => {
      const [entry, mac = null] = [found.get(id), link.macs[at]];
      if (entry && isEntryOf(this.macs, entry, mac ?? entry.mac)) return signEntry(this.macs, entry);
      this.isFaulty('audit_entries', id);
      return mac;
    });
    // A link that continues another one than the one before keeps showing it.
    const previous = (continues(link, last) && last[0]) || link.previous;
    return signLink(this.macs, { ...link, macs: signed, previous, former: [...link.former, link.mac] });
  }

  private isFaulty(table: string, row: string): void {
    this.faulty.set(`${table} ${row}`, { table, column: 'mac', row });
  }
}
