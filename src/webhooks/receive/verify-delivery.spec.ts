import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { verifyDelivery } from './verify-delivery.js';
import { signWebhook } from './webhook-signature.js';

const SECRETS = ['the first secret', 'the second secret'];
const BODY = Buffer.from('{"eventType":"SESSION_CREATED","sessionId":"s-1"}');
const TIMESTAMP = '1800000000000';
const NOW = Number(TIMESTAMP);
const RULES = { secrets: SECRETS, maxAgeSeconds: undefined };

const headers = (secret = SECRETS[0] ?? '', timestamp = TIMESTAMP, body = BODY) => ({
  'x-service-signature': signWebhook(secret, timestamp, body),
  'x-service-timestamp': timestamp,
});

test.each([0, 1])('a delivery signed with secret %d of the rotation is genuine, and which one is told', (index) => {
  const signature = headers(SECRETS[index])['x-service-signature'];
  expect(verifyDelivery(headers(SECRETS[index]), BODY, RULES, NOW)).toEqual({
    signature,
    body: BODY,
    sentAt: TIMESTAMP,
    secretIndex: index,
  });
});

test('a signature in upper case is genuine, and the same delivery as in lower case', () => {
  const lower = headers();
  const upper = { ...lower, 'x-service-signature': lower['x-service-signature'].toUpperCase() };
  expect(verifyDelivery(upper, BODY, RULES, NOW)).toEqual(verifyDelivery(lower, BODY, RULES, NOW));
});

test('deliveries of a retired secret are rejected', () => {
  const rules = { ...RULES, secrets: SECRETS.slice(1) };
  expect(verifyDelivery(headers(SECRETS[0]), BODY, rules, NOW)).toEqual({ cause: 'wrong-signature' });
});

test('a window judges the timestamp only of what is genuine', () => {
  const rules = { ...RULES, maxAgeSeconds: 3_600 };
  expect(verifyDelivery(headers(), BODY, rules, NOW + 3_600_001)).toMatchObject({ cause: 'stale' });
  expect(verifyDelivery(headers('another secret'), BODY, rules, NOW + 3_600_001)).toEqual({ cause: 'wrong-signature' });
});

test('an identity encoding changes nothing, and any other is rejected', () => {
  expect(verifyDelivery({ ...headers(), 'content-encoding': 'Identity' }, BODY, RULES, NOW)).toMatchObject({
    secretIndex: 0,
  });
  expect(verifyDelivery({ ...headers(), 'content-encoding': 'gzip, identity' }, BODY, RULES, NOW)).toEqual({
    cause: 'content-encoding',
  });
});

test.each([
  ['x-service-signature', undefined, 'missing-signature'],
  ['x-service-signature', '', 'missing-signature'],
  ['x-service-signature', 'a,b', 'duplicate-header'],
  ['x-service-signature', 'a'.repeat(63), 'malformed-signature'],
  ['x-service-signature', 'g'.repeat(64), 'malformed-signature'],
  ['x-service-signature', `${'a'.repeat(64)} `, 'malformed-signature'],
  ['x-service-signature', ` ${'a'.repeat(64)}`, 'malformed-signature'],
  ['x-service-timestamp', undefined, 'missing-timestamp'],
  ['x-service-timestamp', '', 'missing-timestamp'],
  ['x-service-timestamp', `${TIMESTAMP}, ${TIMESTAMP}`, 'duplicate-header'],
  ['x-service-timestamp', `${TIMESTAMP}.0`, 'malformed-timestamp'],
  ['x-service-timestamp', '1'.repeat(16), 'malformed-timestamp'],
])('the header %s with the value %p is refused as %s', (name, value, cause) => {
  expect(verifyDelivery({ ...headers(), [name]: value }, BODY, RULES, NOW)).toEqual({ cause });
});

test('no other signature, timestamp or body is ever genuine', () => {
  const genuine = headers();
  const other = (value: string) =>
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 80 }),
      fc.constantFrom(value.toUpperCase(), ` ${value}`, `${value}\0`, value.slice(1), `${value},${value}`, ''),
      fc
        .tuple(fc.nat(value.length - 1), fc.constantFrom(...'0123456789abcdefA:'))
        .map(([at, by]) => value.slice(0, at) + by + value.slice(at + 1)),
    );
  const mutation = fc.record({
    signature: fc.oneof(fc.constant(genuine['x-service-signature']), other(genuine['x-service-signature'])),
    timestamp: fc.oneof(fc.constant(TIMESTAMP), other(TIMESTAMP)),
    body: fc.oneof(
      fc.constant(BODY),
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    ),
  });
  fc.assert(
    fc.property(mutation, ({ signature, timestamp, body }) => {
      const isSigned = signature.toLowerCase() === genuine['x-service-signature'];
      const same = isSigned && timestamp === TIMESTAMP && body.equals(BODY);
      const verdict = verifyDelivery(
        { 'x-service-signature': signature, 'x-service-timestamp': timestamp },
        body,
        RULES,
        NOW,
      );
      expect('signature' in verdict).toBe(same);
    }),
    propertyRuns(),
  );
});

test.each([
  [0, expect.objectContaining({ secretIndex: 0 })],
  [3_600_000, expect.objectContaining({ secretIndex: 0 })],
  [3_600_001, { cause: 'stale', seconds: 1 }],
  [7_200_000, { cause: 'stale', seconds: 3_600 }],
  [-300_000, expect.objectContaining({ secretIndex: 0 })],
  [-300_001, { cause: 'future', seconds: 301 }],
])('within an hour an age of %d ms is %p', (age, verdict) => {
  expect(verifyDelivery(headers(), BODY, { ...RULES, maxAgeSeconds: 3_600 }, NOW + age)).toEqual(verdict);
});

test('without a window any age will do, so that no retry is lost', () => {
  for (const now of [0, 999_999_999_999_999]) {
    expect(verifyDelivery(headers(), BODY, RULES, now)).toMatchObject({ secretIndex: 0 });
  }
});
