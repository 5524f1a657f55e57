import { Injectable } from '@nestjs/common';
import { cursorOf, type FeedPosition, positionOf } from '../../feed/feed-cursor.js';
import type { Subscription } from '../../generated/prisma/client.js';
import { SealedColumn, Vault } from '../../vault/vault.js';
import type { FeedType } from '../../words/feed-types.js';
import { type CodeOf, codesOf, WORDS } from '../../words/words.js';
import type { Target } from './endpoint.js';
import type { PauseReason } from './push-rules.js';

/** A row of `subscriptions`. */
export interface SubscriptionRow extends Subscription {
  types: FeedType[];
  paused: PauseReason | null;
}

/** Gives the codes of a row their types. */
export const rowOf = (row: Subscription): SubscriptionRow => row as SubscriptionRow;

/** The chosen types of events; undefined for every type. */
export const typesOf = ({ types }: SubscriptionRow): FeedType[] | undefined => (types.length > 0 ? types : undefined);

export const STATES = codesOf(WORDS.subscriptionState);
export type State = CodeOf<'subscriptionState'>;

export function stateOf({ paused, failures }: SubscriptionRow): State {
  if (paused !== null) return paused === 'cursor-expired' ? 'cursor-expired' : 'paused';
  return failures > 0 ? 'retrying' : 'active';
}

/** The cursor of the last event that the endpoint took. */
export const cursorOfRow = ({ epoch, position }: Pick<SubscriptionRow, 'epoch' | 'position'>): string =>
  cursorOf(epoch, position);

/** The columns of a place in the feed. @param cursor of an event or a page */
export function placeOf(cursor: string): Pick<SubscriptionRow, 'epoch' | 'position'> {
  const { epoch, number } = positionOf(cursor) as FeedPosition;
  return { epoch, position: number };
}

/** What `open` returns; undefined if a key is missing or a value damaged. */
export function opened<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch {
    return undefined;
  }
}

/** Encrypts what a subscription sends to prove itself. Opening throws if a key is missing or a value is damaged. */
@Injectable()
export class SubscriptionSeal {
  readonly secret: SealedColumn<string>;
  readonly former: SealedColumn<string>;
  readonly headers: SealedColumn<Record<string, string>>;

  constructor(vault: Vault) {
    this.secret = new SealedColumn(vault, 'subscriptions', 'secret');
    this.former = new SealedColumn(vault, 'subscriptions', 'former_secret');
    this.headers = new SealedColumn(vault, 'subscriptions', 'headers');
  }

  /** The secrets that sign now, the current one first. */
  secretsOf({ id, secret, formerSecret, formerUntil }: SubscriptionRow, now: Date): string[] {
    const former = formerUntil !== null && formerUntil > now ? this.former.open(id, formerSecret) : null;
    return [this.secret.open(id, secret), ...(former === null ? [] : [former])];
  }

  /** The endpoint of a subscription, with everything that a push to it needs. */
  targetOf(row: SubscriptionRow, now: Date): Target {
    return { url: row.url, secrets: this.secretsOf(row, now), headers: this.headers.open(row.id, row.headers) ?? {} };
  }
}
