import type { FeedEventResponse } from '../feed/feed.dto.js';
import { Problem } from '../http/problem/problem.js';
import { MAX_SUBSCRIPTIONS } from './push/push-rules.js';

export function unknown(): Problem {
  return new Problem('unknown-subscription', 'No subscription has this id. GET /v1/subscriptions lists them.');
}

export function tooMany(): Problem {
  const detail = `There are ${MAX_SUBSCRIPTIONS} subscriptions, which is the maximum. Delete one, or send more types to one endpoint.`;
  return new Problem('too-many-subscriptions', detail);
}

export function altered(): Problem {
  const detail =
    'This subscription was changed outside this service, or a key of AUDIT_KEYS or DATA_KEYS is missing. If none is, delete it, and create a new one with its `cursor` as `after`.';
  return new Problem('subscription-altered', detail);
}

export function notChosen(): Problem {
  const detail =
    'Events after its cursor are gone. Read the current state of what you mirror, then send `after`: 0 or latest.';
  return new Problem('cursor-expired', detail, { pointer: '/after' });
}

export function notNext(next: FeedEventResponse | undefined): Problem {
  const detail = next
    ? `The event after its cursor is ${next.cursor}. GET /v1/subscriptions/{id} shows it as \`next\`.`
    : 'The event is no longer next, no event waits, or none of the next 5,000 has a type of this subscription. GET /v1/subscriptions/{id} shows its state.';
  return new Problem('not-next', detail, { extensions: { next: next?.cursor ?? null } });
}

export function held(): Problem {
  return new Problem('sending-held', 'Sending is held, so nothing is pushed. GET /v1/sending names who holds it.');
}
