import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Random } from '../config/random.js';
import { LOCKS } from '../database/advisory-locks.js';
import { after as afterKey } from '../database/paging.js';
import { PrismaService, type Tx, toBytes } from '../database/prisma.service.js';
import type { FeedEventResponse } from '../feed/feed.dto.js';
import { LATEST } from '../feed/feed-cursor.js';
import { FeedReader } from '../feed/feed-reader.js';
import { requestFault } from '../http/body/validation.js';
import { Problem } from '../http/problem/problem.js';
import { decodeCursor, pageOf } from '../http/request/page.js';
import type { WorkQueue } from '../queue/work/work-queue.js';
import { WorkQueues } from '../queue/work/work-queues.js';
import { Sending } from '../sending/sending.js';
import { Attempts } from './push/attempts.repository.js';
import { Endpoint } from './push/endpoint.js';
import { readHeaders } from './push/endpoint-headers.js';
import { checkEndpointUrl } from './push/endpoint-url.js';
import { newSecret, testMessage } from './push/message.js';
import { MAX_SUBSCRIPTIONS, pauseAfter } from './push/push-rules.js';
import {
  cursorOfRow,
  opened,
  placeOf,
  rowOf,
  type SubscriptionRow,
  SubscriptionSeal,
} from './push/subscription-row.js';
import { SubscriptionView } from './subscription-view.js';
import type {
  AttemptPageResponse,
  ChangeSubscriptionRequest,
  NewSubscriptionRequest,
  NewSubscriptionResponse,
  PushAnswerResponse,
  SubscriptionPageResponse,
  SubscriptionResponse,
} from './subscriptions.dto.js';

const SECRET_BYTES = 32;

/** How long a secret signs after its rotation, in milliseconds. */
const FORMER_MS = 24 * 3_600_000;

/** Changes of a subscription whose next attempt is immediate, unless it is paused. */
const dueNow = (paused: string | null, now: Date) => ({
  failures: 0,
  failingSince: null,
  dueAt: paused === null ? now : null,
});

/** The subscriptions, as callers make and change them. */
@Injectable()
export class Subscriptions {
  private readonly pushes: WorkQueue;

  constructor(
    private readonly prisma: PrismaService,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly seal: SubscriptionSeal,
    private readonly audit: Audit,
    private readonly reader: FeedReader,
    private readonly sending: Sending,
    private readonly endpoint: Endpoint,
    private readonly views: SubscriptionView,
    private readonly attemptsStore: Attempts,
    queues: WorkQueues,
  ) {
    this.pushes = queues.of('pushes');
  }

  /**
   * Makes a subscription. @returns it with its secret, which is never shown again
   *
   * @throws {Problem} 400 `validation`, 409 `too-many-subscriptions`, 410 `cursor-gone`
   */
  async create(request: NewSubscriptionRequest): Promise<NewSubscriptionResponse> {
    const { url, types, description, headers, after } = request;
    this.checkUrl(url);
    const start = await this.reader.startAt(after ?? LATEST);
    const id = randomUUID();
    const secret = newSecret(this.random.bytes(SECRET_BYTES));
    const asked = { url, types: types ?? [], description: description ?? null, ...this.sealed(id, headers ?? {}) };
    const row = await this.prisma.transaction(async (tx) => {
      const [{ now }] = await tx.$queryRaw<[{ now: Date }]>`
        SELECT pg_advisory_xact_lock(${LOCKS.subscriptions})::text, clock_timestamp() AS now`;
      if ((await tx.subscription.count()) >= MAX_SUBSCRIPTIONS) {
        const detail = `There are ${MAX_SUBSCRIPTIONS} subscriptions, which is the maximum. Delete one, or send more types to one endpoint.`;
        throw new Problem('too-many-subscriptions', detail);
      }
      const data = {
        ...asked,
        id,
        secret: toBytes(this.seal.secret.seal(id, secret)),
        epoch: start.epoch,
        position: start.number,
        dueAt: now,
      };
      return this.stored(tx, rowOf(await tx.subscription.create({ data })));
    });
    return { ...(await this.views.of(row)), secret };
  }

  /** All subscriptions, oldest first. */
  async list(limit: number, cursor: string | undefined): Promise<SubscriptionPageResponse> {
    const [time, id] = decodeCursor<[string, string]>(cursor, 'time', 'uuid') ?? [];
    const rows = await this.prisma.subscription.findMany({
      where: time === undefined || id === undefined ? {} : afterKey('createdAt', time, id),
      orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
      take: limit + 1,
    });
    const { items, nextCursor } = pageOf(rows, limit, (row) => [row.createdAt.toISOString(), row.id], rowOf);
    return { items: await Promise.all(items.map((row) => this.views.of(row))), nextCursor };
  }

  /** @throws {Problem} 404 `unknown-subscription` */
  async find(id: string): Promise<SubscriptionResponse> {
    const row = await this.read(id);
    this.audit.about('subscription', id);
    return this.views.of(row);
  }

  /**
   * Changes a subscription. Where to continue also ends `cursor-expired`.
   *
   * @throws {Problem} 400 `validation`, 404 `unknown-subscription`, 409 `cursor-expired`, 410 `cursor-gone`
   */
  async change(id: string, request: ChangeSubscriptionRequest): Promise<SubscriptionResponse> {
    const { url, types, headers, paused, after } = request;
    if ((url ?? paused ?? after) == null && types === undefined && headers === undefined)
      throw requestFault('', 'at least one of url, types, headers, paused and after must be given');
    if (url != null) this.checkUrl(url);
    const sealed = headers === undefined ? {} : this.sealed(id, headers ?? {});
    const start = after == null ? undefined : await this.reader.startAt(after);
    if (paused === false && !start && (await this.views.nextOf(await this.read(id))) === 'gone') throw notChosen();
    const row = await this.changed(id, (old, now) => {
      const pause = pauseAfter(old.paused, paused, start !== undefined);
      if (pause === 'not-chosen') throw notChosen();
      if (url != null && headers === undefined && old.headerNames.length > 0 && !isSameOrigin(url, old.url))
        throw requestFault('/headers', 'must be given again, or be null, because the new URL names another host');
      return {
        url: url ?? old.url,
        types: types === undefined ? old.types : (types ?? []),
        ...sealed,
        ...(start && { epoch: start.epoch, position: start.number }),
        paused: pause,
        pausedAt: pause === null ? null : (old.pausedAt ?? now),
        ...dueNow(pause, now),
      };
    });
    return this.views.of(row);
  }

  /**
   * Replaces the secret. The former one signs, too, for 24 hours or until the next rotation, because an EHR needs time to
   * store the new one.
   *
   * @throws {Problem} 404 `unknown-subscription`
   */
  async rotateSecret(id: string): Promise<NewSubscriptionResponse> {
    const secret = newSecret(this.random.bytes(SECRET_BYTES));
    const row = await this.changed(id, (old, now) => {
      const former = opened(() => this.seal.secret.open(id, old.secret));
      return {
        secret: toBytes(this.seal.secret.seal(id, secret)),
        formerSecret: former === undefined ? null : toBytes(this.seal.former.seal(id, former)),
        formerUntil: former === undefined ? null : new Date(now.getTime() + FORMER_MS),
      };
    });
    return { ...(await this.views.of(row)), secret };
  }

  /**
   * Sends a test event once, in any state of the subscription.
   *
   * @throws {Problem} 404 `unknown-subscription`, 503 `sending-held`
   */
  async test(id: string): Promise<PushAnswerResponse> {
    const row = await this.read(id);
    this.audit.about('subscription', id);
    if (!(await this.sending.isAllowed()))
      throw new Problem('sending-held', 'Sending is held, so nothing is pushed. GET /v1/sending names who holds it.');
    const now = this.clock.now();
    const message = testMessage(randomUUID(), `subscriptions/${id}`, now);
    const target = opened(() => this.seal.targetOf(row, now));
    if (!target) return { at: now, status: null, fault: 'internal' };
    const answer = await this.endpoint.deliver(target, message);
    return { at: now, status: answer?.status ?? null, fault: answer?.fault ?? null };
  }

  /** The last attempts, newest first. @throws {Problem} 404 `unknown-subscription` */
  async attempts(id: string): Promise<AttemptPageResponse> {
    await this.read(id);
    this.audit.about('subscription', id);
    return { items: await this.attemptsStore.of(id), nextCursor: null };
  }

  /**
   * Leaves out the next event.
   *
   * @throws {Problem} 404 `unknown-subscription`, 409 `not-next`
   */
  async skip(id: string, cursor: string): Promise<SubscriptionResponse> {
    // Before the transaction, which must not wait for a second connection.
    const seen = await this.read(id);
    const found = await this.views.nextOf(seen);
    const next = found === 'gone' ? undefined : found;
    const row = await this.changed(id, (old, now) => {
      const isMoved = cursorOfRow(old) !== cursorOfRow(seen) || !isDeepStrictEqual(old.types, seen.types);
      if (next?.cursor !== cursor || isMoved) throw notNext(isMoved ? undefined : next);
      return { ...placeOf(cursor), ...dueNow(old.paused, now) };
    });
    return this.views.of(row);
  }

  /** @throws {Problem} 404 `unknown-subscription` */
  async remove(id: string): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      const { count } = await tx.subscription.deleteMany({ where: { id } });
      if (count === 0) throw unknown();
      this.audit.about('subscription', id);
      await this.audit.store(tx);
    });
  }

  /** Changes one locked row, stores the audit entry, and wakes the pushes. */
  private changed(
    id: string,
    change: (old: SubscriptionRow, now: Date) => Partial<SubscriptionRow>,
  ): Promise<SubscriptionRow> {
    return this.prisma.transaction(async (tx) => {
      const [locked] = await tx.$queryRaw<{ now: Date }[]>`
        SELECT clock_timestamp() AS now FROM subscriptions WHERE id = ${id}::uuid FOR UPDATE`;
      if (!locked) throw unknown();
      const old = await this.read(id, tx);
      this.audit.about('subscription', id);
      const data = { ...change(old, locked.now), version: old.version + 1n };
      return this.stored(tx, rowOf(await tx.subscription.update({ where: { id }, data })));
    });
  }

  private async stored(tx: Tx, row: SubscriptionRow): Promise<SubscriptionRow> {
    this.audit.about('subscription', row.id);
    await this.audit.store(tx);
    this.prisma.afterCommit(tx, () => void this.pushes.add(row.id));
    return row;
  }

  private async read(id: string, db: Tx = this.prisma): Promise<SubscriptionRow> {
    const row = await db.subscription.findUnique({ where: { id } });
    if (!row) throw unknown();
    return rowOf(row);
  }

  /** @throws {Problem} 400 `validation` */
  private checkUrl(url: string): void {
    const fault = checkEndpointUrl(url, this.env);
    if (fault !== undefined) throw requestFault('/url', fault);
  }

  /** The columns of further headers. @throws {Problem} 400 `validation` */
  private sealed(id: string, given: Record<string, unknown>): Pick<SubscriptionRow, 'headers' | 'headerNames'> {
    const headers = readHeaders(given);
    const headerNames = Object.keys(headers);
    return { headerNames, headers: headerNames.length === 0 ? null : toBytes(this.seal.headers.seal(id, headers)) };
  }
}

/** True if a key for the gateway of one URL is for the other, too. */
const isSameOrigin = (one: string, other: string): boolean => new URL(one).origin === new URL(other).origin;

const unknown = (): Problem =>
  new Problem('unknown-subscription', 'No subscription has this id. GET /v1/subscriptions lists them.');

function notChosen(): Problem {
  const detail =
    'Events after its cursor are gone. Read the current state of what you mirror, then send `after`: 0 or latest.';
  return new Problem('cursor-expired', detail, { pointer: '/after' });
}

function notNext(next: FeedEventResponse | undefined): Problem {
  const detail = next
    ? `The event after its cursor is ${next.cursor}. GET /v1/subscriptions/{id} shows it as \`next\`.`
    : 'The event is no longer next, no event waits, or none of the next 5,000 has a type of this subscription. GET /v1/subscriptions/{id} shows its state.';
  return new Problem('not-next', detail, { extensions: { next: next?.cursor ?? null } });
}
