/** The reasons of this service, besides `bad-field`. A failed handler leaves the code of its error instead. */
const MESSAGES: Record<string, string> = {
  'not-json': 'The body is not JSON in UTF-8. A replay does not help.',
  'too-deep': 'The body has too many nested levels or objects. A replay does not help.',
  'not-an-object': 'The body is JSON but not an object. A replay does not help.',
  'no-event-type': 'The body has no eventType, so the event is unknown.',
  'unknown-event-type': 'This version does not know the eventType. Replay the delivery after an upgrade that knows it.',
  'no-outcome': 'The process ended during each of three attempts. Find the cause, then replay the delivery.',
  waiting: 'The event may belong to a request without an answer yet. It is handled again every second.',
  sealed: 'The stored body cannot be decrypted: DATA_KEYS lacks its key, or it is damaged.',
};

/** The code of a stored reason, and a sentence about it: what is wrong and what to do. */
export function describeReason(reason: string): { code: string; message: string } {
  const [code = '', pointer] = reason.split(' ');
  if (code === 'bad-field') return { code, message: `The event's field ${pointer} is missing or invalid.` };
  return {
    code,
    message: MESSAGES[code] ?? 'The handler failed. See the log for the cause, then replay the delivery.',
  };
}
