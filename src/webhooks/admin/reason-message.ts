const MESSAGES: Record<string, string> = {
  'not-json': 'The body is not JSON in UTF-8; sending it again would not help.',
  'not-an-object': 'The body is JSON but no object, so it names no event.',
  'no-event-type': 'The body has no eventType, so nobody can tell what happened.',
  'unknown-event-type': 'This eventType is not known here; replay the delivery after an upgrade that knows it.',
  'not-ours': 'The event is understood but concerns nothing that this service keeps.',
  'no-outcome': 'The process ended while it worked on this delivery; it is tried again by itself, alone.',
  sealed: 'The stored body does not open; DATA_KEYS lacks the key that sealed it, or it is damaged.',
};

/** One sentence about a reason of the inbox: what is wrong and what to do. */
export function reasonMessage(reason: string): string {
  const [code = '', pointer] = reason.split(' ');
  if (code === 'bad-field')
    return `The event lacks ${pointer}, or it is not what the platform states for this event type.`;
  return MESSAGES[code] ?? 'Its handler failed; the log tells where, and POST …/replay tries again.';
}
