import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { type GrantRow, GrantTable } from '../../access/identity/grants.js';
import type { DueColumns } from '../../due-rows/due-loop.js';
import { cursorOf } from '../../feed/feed-cursor.js';
import type { FeedType } from '../../feed/feed-types.js';
import { Macs } from '../../vault/macs.js';
import { SealedColumn, Vault } from '../../vault/vault.js';
import { type CodeOf, codesOf, WORDS } from '../../words/words.js';
import type { PushFault } from './endpoint.js';
import type { PauseReason } from './push-rules.js';

/** The grant of a subscription: where to send which events, and the secrets that sign them. */
interface Grant {
  id: string;
  url: string;
  types: FeedType[] | null;
  secretHash: Buffer;
  formerHash: Buffer | null;
  formerUntil: Date | null;
}

export const SUBSCRIPTION_GRANTS = new GrantTable<Grant>('subscriptions', {
  ...{ id: 'id', url: 'url', types: 'types', secretHash: 'secret_hash' },
  ...{ formerHash: 'former_hash', formerUntil: 'former_until' },
});

/** A row of `subscriptions`. */
export interface SubscriptionRow extends Grant, GrantRow, DueColumns {
  description: string | null;
  secret: Buffer;
  formerSecret: Buffer | null;
  /** A bigint, as decimal text. */
  epoch: string;
  /** A bigint, as decimal text: the number of the last event that the endpoint took. */
  position: string;
  /** Raised by each change of a caller, so that a push in progress notices it. */
  version: number;
  paused: PauseReason | null;
  pausedAt: Date | null;
  failingSince: Date | null;
  answeredAt: Date | null;
  answerStatus: number | null;
  answerFault: PushFault | null;
  deliveredAt: Date | null;
  createdAt: Date;
  now: Date;
}

/** SQL of the fields of a row. */
export const SUBSCRIPTION_COLUMNS = `id, url, types, description, secret, secret_hash AS "secretHash", former_secret AS "formerSecret",
  former_hash AS "formerHash", former_until AS "formerUntil", mac, epoch::text, position::text, version, paused,
  paused_at AS "pausedAt", failures, failing_since AS "failingSince", answered_at AS "answeredAt",
  answer_status AS "answerStatus", answer_fault AS "answerFault", delivered_at AS "deliveredAt", due_at AS "dueAt",
  created_at AS "createdAt", clock_timestamp() AS now`;

export const STATES = codesOf(WORDS.subscriptionState);
export type State = CodeOf<'subscriptionState'>;

export function stateOf(seal: SubscriptionSeal, row: SubscriptionRow): State {
  if (!seal.secretsOf(row)) return 'altered';
  if (row.paused !== null) return row.paused === 'cursor-expired' ? 'cursor-expired' : 'paused';
  return row.failures > 0 ? 'retrying' : 'active';
}

/** The cursor of the last event that the endpoint took. */
export const cursorOfRow = ({ epoch, position }: Pick<SubscriptionRow, 'epoch' | 'position'>): string =>
  cursorOf(BigInt(epoch), BigInt(position));

/** SHA-256 of a secret or of former secrets, as JSON. */
export const hashOf = (value: unknown): Buffer => createHash('sha256').update(JSON.stringify(value)).digest();

/** A secret that was replaced. */
interface FormerSecret {
  secret: string;
  /** Until when it signs, in ISO 8601. */
  until: string;
}

/** Encrypts the secrets of subscriptions, and signs their rows. */
@Injectable()
export class SubscriptionSeal {
  readonly secret: SealedColumn<string>;
  readonly former: SealedColumn<FormerSecret[]>;

  constructor(
    vault: Vault,
    private readonly macs: Macs,
  ) {
    this.secret = new SealedColumn(vault, 'subscriptions', 'secret');
    this.former = new SealedColumn(vault, 'subscriptions', 'former_secret');
  }

  /** Writes the MAC of a row that this transaction made or changed. */
  sign(tx: PoolClient, row: SubscriptionRow): Promise<Buffer> {
    return SUBSCRIPTION_GRANTS.sign(tx, this.macs, row);
  }

  /**
   * The secrets that sign now, the current one first; undefined if this service did not write the row as it is, or a key of
   * the service is missing.
   */
  secretsOf(row: SubscriptionRow): [string, ...string[]] | undefined {
    if (!SUBSCRIPTION_GRANTS.isGenuine(this.macs, row)) return undefined;
    try {
      const current = checked(this.secret.open(row.id, row.secret), row.secretHash);
      return [current, ...this.formerOf(row).map(({ secret }) => secret)];
    } catch {
      return undefined;
    }
  }

  /** The former secrets that still sign, newest first. @throws {Error} if they are not those that the MAC covers */
  formerOf({ id, formerSecret, formerHash, now }: SubscriptionRow): FormerSecret[] {
    if (formerSecret === null || formerHash === null) return [];
    const former = checked(this.former.open(id, formerSecret), formerHash);
    return former.filter(({ until }) => new Date(until) > now);
  }
}

function checked<Value>(value: Value, hash: Buffer): Value {
  if (hashOf(value).equals(hash)) return value;
  throw new Error('The secret of a subscription is not the one that its MAC covers.');
}
