import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Random } from '../config/random.js';
import { after as afterKey } from '../database/paging.js';
import { PrismaService, type Tx, toBytes } from '../database/prisma.service.js';
import { LATEST } from '../feed/feed-cursor.js';
import { FeedReader } from '../feed/feed-reader.js';
import { requestFault } from '../http/body/validation.js';
import { decodeCursor, pageOf } from '../http/request/page.js';
import { Poller } from '../queue/notifier/poller.js';
import { Sending } from '../sending/sending.js';
import { Endpoint } from './push/endpoint.js';
import { checkEndpointUrl } from './push/endpoint-url.js';
import { newSecret, testMessage } from './push/message.js';
import { PUSHES } from './push/push-loop.js';
import { MAX_SUBSCRIPTIONS, pauseAfter } from './push/push-rules.js';
import {
  cursorOfRow,
  hashOf,
  placeOf,
  rowOf,
  type SubscriptionRow,
  SubscriptionSeal,
} from './push/subscription-row.js';
import { altered, held, notChosen, notNext, tooMany, unknown } from './subscription-problems.js';
import { SubscriptionView } from './subscription-view.js';
import type {
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

/** Maximum former secrets: more rotations in a day end the oldest one. */
const MAX_FORMER = 4;

/** Any fixed number: the key of the advisory lock under which subscriptions are counted. */
const COUNT_LOCK = 727_042;

/** Changes of a subscription whose next attempt is immediate, unless it is paused. */
const dueNow = (paused: string | null, now: Date) => ({
  failures: 0,
  failingSince: null,
  dueAt: paused === null ? now : null,
});

/** The subscriptions, as callers make and change them. */
@Injectable()
export class Subscriptions {
  constructor(
    private readonly prisma: PrismaService,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly seal: SubscriptionSeal,
    private readonly audit: Audit,
    private readonly reader: FeedReader,
    private readonly poller: Poller,
    private readonly sending: Sending,
    private readonly endpoint: Endpoint,
    private readonly views: SubscriptionView,
  ) {}

  /**
   * Makes a subscription. @returns it with its secret, which is never shown again
   *
   * @throws {Problem} 400 `validation`, 409 `too-many-subscriptions`, 410 `cursor-gone`
   */
  async create({ url, types, description, after }: NewSubscriptionRequest): Promise<NewSubscriptionResponse> {
    this.checkUrl(url);
    const start = await this.reader.startAt(after ?? LATEST);
    const id = randomUUID();
    const secret = newSecret(this.random.bytes(SECRET_BYTES));
    const grant = { id, url, types: types ?? [], secretHash: hashOf(secret), formerHash: null, formerUntil: null };
    const row = await this.prisma.transaction(async (tx) => {
      const [{ now }] = await tx.$queryRaw<[{ now: Date }]>`
        SELECT pg_advisory_xact_lock(${COUNT_LOCK})::text, clock_timestamp() AS now`;
      if ((await tx.subscription.count()) >= MAX_SUBSCRIPTIONS) throw tooMany();
      const data = {
        ...grant,
        description: description ?? null,
        secret: toBytes(this.seal.secret.seal(id, secret)),
        mac: this.seal.macOf(grant),
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
   * @throws {Problem} 400 `validation`, 404 `unknown-subscription`, 409 `cursor-expired` or `subscription-altered`, 410
   *   `cursor-gone`
   */
  async change(id: string, { url, types, paused, after }: ChangeSubscriptionRequest): Promise<SubscriptionResponse> {
    if ((url ?? types ?? paused ?? after) == null && types !== null)
      throw requestFault('', 'at least one of url, types, paused and after must be given');
    if (url != null) this.checkUrl(url);
    const start = after == null ? undefined : await this.reader.startAt(after);
    if (paused === false && !start && (await this.views.nextOf(await this.read(id))) === 'gone') throw notChosen();
    const row = await this.changed(id, (old, now) => {
      this.secretsOf(old);
      const pause = pauseAfter(old.paused, paused, start !== undefined);
      if (pause === 'not-chosen') throw notChosen();
      const grant = { url: url ?? old.url, types: types === undefined ? old.types : (types ?? []) };
      return {
        ...grant,
        mac: this.seal.macOf({ ...old, ...grant }),
        ...(start && { epoch: start.epoch, position: start.number }),
        paused: pause,
        pausedAt: pause === null ? null : (old.pausedAt ?? now),
        ...dueNow(pause, now),
      };
    });
    return this.views.of(row);
  }

  /**
   * Replaces the secret; the former ones sign, too, each for 24 hours, because an answer may have been lost.
   *
   * @throws {Problem} 404 `unknown-subscription`, 409 `subscription-altered`
   */
  async rotateSecret(id: string): Promise<NewSubscriptionResponse> {
    const secret = newSecret(this.random.bytes(SECRET_BYTES));
    const row = await this.changed(id, (old, now) => {
      const [replaced] = this.secretsOf(old);
      const formerUntil = new Date(now.getTime() + FORMER_MS);
      const current = { secret: replaced, until: formerUntil.toISOString() };
      const former = [current, ...this.seal.formerOf(old, now)].slice(0, MAX_FORMER);
      const grant = { secretHash: hashOf(secret), formerHash: hashOf(former), formerUntil };
      return {
        ...grant,
        mac: this.seal.macOf({ ...old, ...grant }),
        secret: toBytes(this.seal.secret.seal(id, secret)),
        formerSecret: toBytes(this.seal.former.seal(id, former)),
      };
    });
    return { ...(await this.views.of(row)), secret };
  }

  /**
   * Sends a test event once, in any state of the subscription.
   *
   * @throws {Problem} 404 `unknown-subscription`, 409 `subscription-altered`, 503 `sending-held`
   */
  async test(id: string): Promise<PushAnswerResponse> {
    const row = await this.read(id);
    const secrets = this.secretsOf(row);
    this.audit.about('subscription', id);
    if (!(await this.sending.isAllowed())) throw held();
    const now = this.clock.now();
    const message = testMessage(randomUUID(), `subscriptions/${id}`, now);
    const answer = await this.endpoint.deliver({ url: row.url, secrets }, message);
    return { at: now, status: answer?.status ?? null, fault: answer?.fault ?? null };
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
      const isMoved = cursorOfRow(old) !== cursorOfRow(seen) || old.version !== seen.version;
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
      const data = { ...change(old, locked.now), version: old.version + 1 };
      return this.stored(tx, rowOf(await tx.subscription.update({ where: { id }, data })));
    });
  }

  private readonly wakePushes = (): void => this.poller.runNow(PUSHES);

  private async stored(tx: Tx, row: SubscriptionRow): Promise<SubscriptionRow> {
    this.audit.about('subscription', row.id);
    await this.audit.store(tx);
    this.prisma.afterCommit(tx, this.wakePushes);
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

  /** The secrets of a row, the current one first. @throws {Problem} 409 `subscription-altered` */
  private secretsOf(row: SubscriptionRow): [string, ...string[]] {
    const secrets = this.seal.secretsOf(row);
    if (!secrets) throw altered();
    return secrets;
  }
}
