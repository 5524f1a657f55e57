import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { GrantTable } from '../../access/identity/grants.js';
import { Clock } from '../../config/clock.js';
import { toBytes } from '../../database/prisma.service.js';
import { cursorOf, type FeedPosition, positionOf } from '../../feed/feed-cursor.js';
import type { FeedType } from '../../feed/feed-types.js';
import type { Subscription } from '../../generated/prisma/client.js';
import { Macs } from '../../vault/macs.js';
import { SealedColumn, Vault } from '../../vault/vault.js';
import { type CodeOf, codesOf, WORDS } from '../../words/words.js';
import type { PushFault } from './endpoint.js';
import type { PauseReason } from './push-rules.js';

/** A row of `subscriptions`. */
export interface SubscriptionRow extends Subscription {
  types: FeedType[];
  paused: PauseReason | null;
  answerFault: PushFault | null;
}

/** Gives the codes of a row their types. */
export const rowOf = (row: Subscription): SubscriptionRow => row as SubscriptionRow;

/** The grant of a subscription: where to send which events, and the secrets that sign them. */
type Grant = Pick<SubscriptionRow, 'id' | 'url' | 'types' | 'secretHash' | 'formerHash' | 'formerUntil'>;

export const SUBSCRIPTION_GRANTS = new GrantTable<Grant>('subscriptions', {
  ...{ id: 'id', url: 'url', types: 'types', secretHash: 'secret_hash' },
  ...{ formerHash: 'former_hash', formerUntil: 'former_until' },
});

/** The chosen types of events; undefined for every type. */
export const typesOf = ({ types }: SubscriptionRow): FeedType[] | undefined => (types.length > 0 ? types : undefined);

export const STATES = codesOf(WORDS.subscriptionState);
export type State = CodeOf<'subscriptionState'>;

export function stateOf(seal: SubscriptionSeal, row: SubscriptionRow): State {
  if (!seal.secretsOf(row)) return 'altered';
  if (row.paused !== null) return row.paused === 'cursor-expired' ? 'cursor-expired' : 'paused';
  return row.failures > 0 ? 'retrying' : 'active';
}

/** The cursor of the last event that the endpoint took. */
export const cursorOfRow = ({ epoch, position }: Pick<SubscriptionRow, 'epoch' | 'position'>): string =>
  cursorOf(epoch, position);

/** The columns of a place in the feed. @param cursor of an event or a page */
export function placeOf(cursor: string): Pick<SubscriptionRow, 'epoch' | 'position'> {
  const { epoch, number } = positionOf(cursor) as FeedPosition;
  return { epoch, position: number };
}

/** SHA-256 of a secret or of former secrets, as JSON. */
export const hashOf = (value: unknown): Uint8Array<ArrayBuffer> =>
  toBytes(createHash('sha256').update(JSON.stringify(value)).digest());

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
    private readonly clock: Clock,
  ) {
    this.secret = new SealedColumn(vault, 'subscriptions', 'secret');
    this.former = new SealedColumn(vault, 'subscriptions', 'former_secret');
  }

  /** The MAC of a row that this service makes or changes. */
  macOf(grant: Grant): Uint8Array<ArrayBuffer> {
    return SUBSCRIPTION_GRANTS.macOf(this.macs, grant);
  }

  /**
   * The secrets that sign now, the current one first; undefined if this service did not write the row as it is, or a key of
   * the service is missing.
   */
  secretsOf(row: SubscriptionRow): [string, ...string[]] | undefined {
    try {
      if (!SUBSCRIPTION_GRANTS.isGenuine(this.macs, row)) return undefined;
      const current = checked(this.secret.open(row.id, row.secret), row.secretHash);
      return [current, ...this.formerOf(row, this.clock.now()).map(({ secret }) => secret)];
    } catch {
      return undefined;
    }
  }

  /** The former secrets that still sign, newest first. @throws {Error} if they are not those that the MAC covers */
  formerOf({ id, formerSecret, formerHash }: SubscriptionRow, now: Date): FormerSecret[] {
    if (formerSecret === null || formerHash === null) return [];
    const former = checked(this.former.open(id, formerSecret), formerHash);
    return former.filter(({ until }) => new Date(until) > now);
  }
}

function checked<Value>(value: Value, hash: Uint8Array): Value {
  if (Buffer.compare(hashOf(value), hash) === 0) return value;
  throw new Error('The secret of a subscription is not the one that its MAC covers.');
}
