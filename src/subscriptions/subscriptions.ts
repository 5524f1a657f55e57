import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../audit/audit.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Random } from '../config/random.js';
import { Database } from '../database/database.js';
import { LATEST, positionOf } from '../feed/feed-cursor.js';
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
  SUBSCRIPTION_COLUMNS,
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

/** SQL assignments of a subscription whose next attempt is immediate. */
const DUE_NOW = 'failures = 0, failing_since = NULL, due_at = CASE WHEN paused IS NULL THEN clock_timestamp() END';

/** The subscriptions, as callers make and change them. */
@Injectable()
export class Subscriptions {
  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly database: Database,
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
    const sealed = this.seal.secret.seal(id, secret);
    const row = await this.database.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock($1)', [COUNT_LOCK]);
      const { rows } = await tx.query<{ count: number }>('SELECT count(*)::int AS count FROM subscriptions');
      if ((rows[0]?.count ?? 0) >= MAX_SUBSCRIPTIONS) throw tooMany();
      const insert = `INSERT INTO subscriptions (id, url, types, description, secret, secret_hash, epoch, position, due_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp())`;
      const values = [id, url, types ?? null, description ?? null, sealed, hashOf(secret)];
      const made = await this.write(tx, insert, [...values, start.epoch, start.number]);
      return this.stored(tx, made as SubscriptionRow);
    });
    return { ...(await this.views.of(row)), secret };
  }

  /** All subscriptions, oldest first. */
  async list(limit: number, cursor: string | undefined): Promise<SubscriptionPageResponse> {
    const [time, id] = decodeCursor<[string, string]>(cursor, 'time', 'uuid') ?? [null, null];
    const { rows } = await this.database.pool.query<SubscriptionRow>(
      `SELECT ${SUBSCRIPTION_COLUMNS} FROM subscriptions
       WHERE $1::timestamptz IS NULL OR (created_at, id) > ($1, $2::uuid) ORDER BY created_at, id LIMIT $3`,
      [time, id, limit + 1],
    );
    const { items, nextCursor } = pageOf(
      rows,
      limit,
      (row) => [row.createdAt.toISOString(), row.id],
      (row) => row,
    );
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
    const row = await this.changed(id, async (tx, old) => {
      this.secretsOf(old);
      const pause = pauseAfter(old.paused, paused, start !== undefined);
      if (pause === 'not-chosen') throw notChosen();
      return this.write(
        tx,
        `UPDATE subscriptions SET url = coalesce($2, url), types = CASE WHEN $3 THEN $4::text[] ELSE types END,
           paused = $5, paused_at = CASE WHEN $5::text IS NULL THEN NULL ELSE coalesce(paused_at, clock_timestamp()) END,
           epoch = coalesce($6, epoch), position = coalesce($7, position), version = version + 1, failures = 0,
           failing_since = NULL, due_at = CASE WHEN $5::text IS NULL THEN clock_timestamp() END
         WHERE id = $1`,
        [id, url ?? null, types !== undefined, types ?? null, pause, start?.epoch ?? null, start?.number ?? null],
      );
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
    const row = await this.changed(id, async (tx, old) => {
      const [replaced] = this.secretsOf(old);
      const until = new Date(old.now.getTime() + FORMER_MS);
      const current = { secret: replaced, until: until.toISOString() };
      const former = [current, ...this.seal.formerOf(old)].slice(0, MAX_FORMER);
      return this.write(
        tx,
        `UPDATE subscriptions SET secret = $2, secret_hash = $3, former_secret = $4, former_hash = $5, former_until = $6,
           version = version + 1 WHERE id = $1`,
        [
          id,
          this.seal.secret.seal(id, secret),
          hashOf(secret),
          this.seal.former.seal(id, former),
          hashOf(former),
          until,
        ],
      );
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
    const row = await this.changed(id, async (tx, old) => {
      const isMoved = cursorOfRow(old) !== cursorOfRow(seen) || old.version !== seen.version;
      if (next?.cursor !== cursor || isMoved) throw notNext(isMoved ? undefined : next);
      const { rows } = await tx.query<SubscriptionRow>(
        `UPDATE subscriptions SET epoch = $2, position = $3, version = version + 1, ${DUE_NOW} WHERE id = $1
         RETURNING ${SUBSCRIPTION_COLUMNS}`,
        [id, positionOf(cursor)?.epoch, positionOf(cursor)?.number],
      );
      return rows[0];
    });
    return this.views.of(row);
  }

  /** @throws {Problem} 404 `unknown-subscription` */
  async remove(id: string): Promise<void> {
    await this.database.transaction(async (tx) => {
      const { rowCount } = await tx.query('DELETE FROM subscriptions WHERE id = $1', [id]);
      if (rowCount === 0) throw unknown();
      this.audit.about('subscription', id);
      await this.audit.store(tx);
    });
  }

  /** Runs a change of one locked row, with its audit entry, and wakes the pushes. */
  private changed(
    id: string,
    change: (tx: PoolClient, old: SubscriptionRow) => Promise<SubscriptionRow | undefined>,
  ): Promise<SubscriptionRow> {
    return this.database.transaction(async (tx) => {
      const old = await this.read(id, tx, 'FOR UPDATE');
      this.audit.about('subscription', id);
      const row = await change(tx, old);
      return this.stored(tx, row ?? old);
    });
  }

  private readonly wakePushes = (): void => this.poller.runNow(PUSHES);

  private async stored(tx: PoolClient, row: SubscriptionRow): Promise<SubscriptionRow> {
    this.audit.about('subscription', row.id);
    await this.audit.store(tx);
    this.database.afterCommit(tx, this.wakePushes);
    return row;
  }

  private async read(
    id: string,
    sql: Pick<PoolClient, 'query'> = this.database.pool,
    lock = '',
  ): Promise<SubscriptionRow> {
    const { rows } = await sql.query<SubscriptionRow>(
      `SELECT ${SUBSCRIPTION_COLUMNS} FROM subscriptions WHERE id = $1 ${lock}`,
      [id],
    );
    if (rows[0]) return rows[0];
    throw unknown();
  }

  /** Runs a statement that writes one row, and signs it. */
  private async write(tx: PoolClient, statement: string, values: unknown[]): Promise<SubscriptionRow | undefined> {
    const { rows } = await tx.query<SubscriptionRow>(`${statement} RETURNING ${SUBSCRIPTION_COLUMNS}`, values);
    const [row] = rows;
    return row && { ...row, mac: await this.seal.sign(tx, row) };
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
