import { Injectable } from '@nestjs/common';
import { LOCKS } from '../../database/advisory-locks.js';
import { before, type Place } from '../../database/paging.js';
import { PrismaService, type Tx, toBytes } from '../../database/prisma.service.js';
import type { BrowserSession } from '../../generated/prisma/client.js';
import { Macs } from '../../vault/macs.js';
import { GrantTable, type Timed } from '../identity/grants.js';

export type { BrowserSession };

/** What the MAC covers. `scopes` are fixed when a person signs in; empty for a key, whose own scopes count. */
type Session = Omit<BrowserSession, 'mac'>;

/** A key, or a person of an OpenID provider. */
export type Owner = Pick<Session, 'issuer' | 'subject'>;

export const SESSION_GRANTS = new GrantTable<Session>('browser_sessions', {
  ...{ id: 'id', tokenHash: 'token_hash', keyHash: 'key_hash', issuer: 'issuer', subject: 'subject', name: 'name' },
  ...{ scopes: 'scopes', createdAt: 'created_at', authenticatedAt: 'authenticated_at' },
  ...{ lastSeenAt: 'last_seen_at', endsAt: 'ends_at' },
});

/** The stored sessions. Each write signs the row. */
@Injectable()
export class BrowserSessionsRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly macs: Macs,
  ) {}

  /** False for a row that this service did not write as it is: it grants nothing. */
  isGenuine(row: BrowserSession): boolean {
    return SESSION_GRANTS.isGenuine(this.macs, row);
  }

  /** The session whose token has this SHA-256. */
  async byTokenHash(hash: Uint8Array): Promise<Timed<BrowserSession> | undefined> {
    return (await SESSION_GRANTS.read<BrowserSession>(this.prisma, 'token_hash = $1', toBytes(hash)))[0];
  }

  /** Those sessions that exist. */
  byIds(ids: string[]): Promise<Timed<BrowserSession>[]> {
    return SESSION_GRANTS.read(this.prisma, 'id = ANY ($1::uuid[])', ids);
  }

  /** Every session, for the check of their MACs. */
  all(): Promise<BrowserSession[]> {
    return this.prisma.browserSession.findMany();
  }

  /**
   * Sessions that end after `now`, newest first.
   *
   * @param owner undefined for all
   * @param place creation time and id of the session before the first one
   */
  list(owner: Owner | undefined, now: Date, take: number, place?: Place): Promise<BrowserSession[]> {
    const where = { endsAt: { gt: now }, ...owner, ...(place && before('createdAt', ...place)) };
    return this.prisma.browserSession.findMany({ where, orderBy: [{ createdAt: 'desc' }, { id: 'desc' }], take });
  }

  /** Waits for others that open a session, to count them. @returns the database's time */
  async lock(tx: Tx): Promise<Date> {
    const [{ now }] = await tx.$queryRaw<[{ now: Date }]>`
      SELECT pg_advisory_xact_lock(${LOCKS.browserSessions})::text, clock_timestamp() AS now`;
    return now;
  }

  /** Deletes sessions that have ended, one that is replaced, and all but the newest ones of an owner. */
  async clear(tx: Tx, now: Date, owner: Owner, kept: number, replaced: string | undefined): Promise<void> {
    const oldest = await tx.browserSession.findMany({
      where: owner,
      orderBy: [{ createdAt: 'desc' }, { id: 'asc' }],
      skip: kept,
      select: { id: true },
    });
    const ids = [...oldest.map(({ id }) => id), ...(replaced === undefined ? [] : [replaced])];
    await tx.browserSession.deleteMany({ where: { OR: [{ endsAt: { lte: now } }, { id: { in: ids } }] } });
  }

  /** Stores a new session. */
  async create(tx: Tx, session: Session): Promise<void> {
    await tx.browserSession.create({ data: { ...session, mac: SESSION_GRANTS.macOf(this.macs, session) } });
  }

  /** @param owner undefined for any @returns false if there is none */
  async remove(tx: Tx, id: string, owner: Owner | undefined): Promise<boolean> {
    return (await tx.browserSession.deleteMany({ where: { id, ...owner } })).count > 0;
  }

  /** Stores a use, unless another request has changed the row. */
  async extend(old: BrowserSession, use: Pick<Session, 'lastSeenAt' | 'endsAt'>): Promise<void> {
    const { id, mac } = old;
    const data = { ...use, mac: SESSION_GRANTS.macOf(this.macs, { ...old, ...use }) };
    await this.prisma.browserSession.updateMany({ where: { id, mac }, data });
  }
}
