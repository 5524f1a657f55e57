import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { allColumns } from '../../database/columns.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import { SubjectIds } from '../../feed/subject-ids.js';
import { UUID } from '../../http/request/uuid-param.js';
import { peopleOf } from '../../people/store/person-users.js';
import { Contract } from '../../platform/contract/contract.js';
import type { WorkQueue } from '../../queue/work/work-queue.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { type LookupPolicy, nextLookup } from './next-lookup.js';
import { type Happened, publish, type SessionFeedEvent } from './publish.js';
import type { SessionRow } from './session-row.js';

/** A locked row, with the database's time. */
export type LockedSession = SessionRow & { now: Date };

/** SQL of the columns of a session `t`, with the database's time. */
export const WITH_TIME = `${allColumns('Session', 't')}, clock_timestamp() AS now`;

const lockedBy = (condition: string) => `SELECT ${WITH_TIME} FROM sessions t WHERE ${condition} FOR UPDATE`;
const BY_ID = lockedBy('id = $1::uuid');
const BY_PLATFORM_ID = lockedBy('session_id = $1');
const CREATE = `INSERT INTO sessions AS t (id, session_id, state, state_from) VALUES ($1::uuid, $2, 'Processing', 'events')
  ON CONFLICT (session_id) DO NOTHING RETURNING ${WITH_TIME}`;

/** The rows of sessions: locks, inserts, and the one way in which a change is saved. */
@Injectable()
export class SessionsRepository {
  readonly policy: LookupPolicy;
  private readonly queue: WorkQueue;

  constructor(
    env: Env,
    queues: WorkQueues,
    private readonly prisma: PrismaService,
    private readonly contract: Contract,
    private readonly feed: Feed,
    subjects: SubjectIds,
  ) {
    this.policy = {
      afterMs: env.SESSION_REFRESH_AFTER_SECONDS * 1_000,
      everyMs: env.SESSION_REFRESH_EVERY_SECONDS * 1_000,
    };
    this.queue = queues.of('sessions');
    subjects.register('sessions', (id) => this.idsOf(id));
  }

  /** True if the contract lets sessions be fetched. */
  get canFetch(): boolean {
    return this.contract.canCall('getSession');
  }

  async lock(tx: Tx, id: string): Promise<LockedSession | undefined> {
    const [row] = await tx.$queryRawUnsafe<LockedSession[]>(BY_ID, id);
    return row;
  }

  /** @param id of a row that was found: rows of sessions are never deleted */
  async lockExisting(tx: Tx, id: string): Promise<LockedSession> {
    const row = await this.lock(tx, id);
    if (!row) throw new Error('A session that was found does not exist.');
    return row;
  }

  async lockByPlatformId(tx: Tx, sessionId: string): Promise<LockedSession | undefined> {
    const [row] = await tx.$queryRawUnsafe<LockedSession[]>(BY_PLATFORM_ID, sessionId);
    return row;
  }

  /**
   * Makes and locks the row of a platform session, which may exist.
   *
   * @returns `isNew` if it was made
   */
  async createOrLock(tx: Tx, sessionId: string): Promise<{ row: LockedSession; isNew: boolean }> {
    const [created] = await tx.$queryRawUnsafe<LockedSession[]>(CREATE, randomUUID(), sessionId);
    const row = created ?? (await this.lockByPlatformId(tx, sessionId));
    if (!row) throw new Error('A session was neither found nor created.');
    return { row, isNew: created !== undefined };
  }

  /**
   * Saves changes of a locked session of the platform, publishes what readers see of them, and decides its next lookup.
   *
   * @param row before the changes
   */
  async save(
    tx: Tx,
    row: LockedSession,
    changes: Partial<SessionRow>,
    happened: Omit<Happened, 'now' | 'canFetch'> = {},
  ): Promise<void> {
    const { now, ...before } = row;
    const after = { ...before, ...changes };
    const { canFetch } = this;
    const { events, end } = publish(happened.isNew ? undefined : before, after, { ...happened, now, canFetch });
    const { at: dueAt } = nextLookup({ ...after, ...end }, now, this.policy);
    await this.update(tx, row.id, { ...changes, ...end, dueAt });
    await this.publish(tx, after, events);
    if (dueAt !== null && dueAt <= now && canFetch) this.wake(tx, row.id);
  }

  /** Changes fields of a row, without more. */
  async update(tx: Tx, id: string, fields: Partial<SessionRow>): Promise<void> {
    await tx.session.update({ where: { id }, data: fields, select: { id: true } });
  }

  /** Publishes events of a session in the transaction that causes them. @param row after its changes */
  async publish(tx: Tx, row: SessionRow, events: readonly SessionFeedEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { id, sessionId, partnerAppointmentId, aiNotesEnabled, providerUserId, clientUserIds } = row;
    const people = await peopleOf(tx, [...(providerUserId === null ? [] : [providerUserId]), ...clientUserIds]);
    const provider = people.get(providerUserId ?? '')?.externalId ?? null;
    const clients = clientUserIds.flatMap((user) => people.get(user)?.externalId ?? []);
    const shown = { sessionId, partnerAppointmentId, aiNotesEnabled, provider, clients };
    const subject = `sessions/${id}`;
    await this.feed.append(
      tx,
      ...events.map(({ type, ...event }) => ({ type, subject, data: { ...shown, ...event } })),
    );
  }

  /** Adds the job of a row once the transaction has committed. */
  wake(tx: Tx, id: string): void {
    this.prisma.afterCommit(tx, () => void this.queue.add(id));
  }

  /** The ids that a session has had here: its own, and those of requests that became aliases of it. */
  private async idsOf(id: string): Promise<string[]> {
    if (!UUID.test(id)) return [];
    const row = await this.prisma.session.findUnique({ where: { id }, select: { aliasOf: true } });
    const into = row?.aliasOf ?? id;
    const aliases = await this.prisma.session.findMany({ where: { aliasOf: into }, select: { id: true } });
    return [into, ...aliases.map((alias) => alias.id)];
  }
}
