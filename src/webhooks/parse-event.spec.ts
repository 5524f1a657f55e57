import fc from 'fast-check';
import { EVENT_TYPES } from '../platform/wire-types.js';
import { parseEvent } from './parse-event.js';

const SEED = Number(process.env.SEED ?? 20261121);
const parse = (body: unknown) => parseEvent(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));

test('session fields are read at the top level', () => {
  const body = { eventType: 'SESSION_CREATED', sessionId: 's-1', providerUserId: 'p-1', aiNotesEnabled: null };
  expect(parse(body)).toEqual({ eventType: 'SESSION_CREATED', subject: 's-1', body });
});

test('the fields of every other event are read in its payload', () => {
  const body = { eventType: 'USER_CREATED', payload: { userId: 'u-1', role: 'Client', externalUserId: 'e-1' } };
  expect(parse(body)).toEqual({ eventType: 'USER_CREATED', subject: 'u-1', body });
  expect(parse({ eventType: 'COMPLIANCE_JOB_FAILED', payload: { jobId: 'j-1' } })).toMatchObject({ subject: 'j-1' });
});

test.each([undefined, null, 'text', 7, [], {}, { anything: { deep: true } }])(
  'PROCESSING_SESSION_NOTES_FINISHED is understood with the payload %p, which the spec does not show',
  (payload) => {
    expect(parse({ eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload })).toHaveProperty('body');
  },
);

test.each([
  ['', 'not-json'],
  ['{"eventType":', 'not-json'],
  ['[]', 'not-an-object'],
  ['null', 'not-an-object'],
  ['"SESSION_CREATED"', 'not-an-object'],
  ['{}', 'no-event-type'],
  ['{"eventType":7}', 'no-event-type'],
  ['{"eventType":"SESSION_RENAMED"}', 'unknown-event-type'],
  ['{"eventType":"SESSION_CREATED"}', 'bad-field /sessionId'],
  ['{"eventType":"SESSION_CREATED","payload":{"sessionId":"s","providerUserId":"p"}}', 'bad-field /sessionId'],
  ['{"eventType":"SESSION_CREATED","sessionId":"s\\u0000","providerUserId":"p"}', 'bad-field /sessionId'],
  ['{"eventType":"COMPLIANCE_JOB_FAILED","payload":{"jobId":"j\\ud800"}}', 'bad-field /payload/jobId'],
  [
    '{"eventType":"SESSION_CREATED","sessionId":"s","providerUserId":"p","aiNotesEnabled":"yes"}',
    'bad-field /aiNotesEnabled',
  ],
  ['{"eventType":"PROCESSING_SESSION_FINISHED","payload":null}', 'bad-field /payload/processingId'],
  ['{"eventType":"USER_CREATED","payload":{"userId":"u","role":"Cook"}}', 'bad-field /payload/role'],
  ['{"eventType":"USER_CREATED","payload":{"__proto__":{"userId":"u"},"role":"Client"}}', 'bad-field /payload/userId'],
])('%s is not understood: %s', (text, reason) => {
  expect(parse(text)).toMatchObject({ reason });
});

test('bytes that are not UTF-8 are not JSON, and a byte-order mark does no harm', () => {
  expect(parseEvent(Buffer.from('{"eventType":"\xff"}', 'latin1'))).toMatchObject({ reason: 'not-json' });
  const marked = '\ufeff{"eventType":"PROCESSING_SESSION_NOTES_FINISHED"}';
  expect(parse(marked)).toHaveProperty('subject', '');
});

test('an eventType that could hold personal data is not repeated', () => {
  expect(parse({ eventType: 'Jane Roe <jane@roe.example>' })).toEqual({
    eventType: null,
    reason: 'unknown-event-type',
  });
  expect(parse({ eventType: 'SESSION_RENAMED' })).toMatchObject({ eventType: 'SESSION_RENAMED' });
});

test('whatever a genuine body holds, it is either understood or marked with a reason', () => {
  const event = fc.record(
    {
      eventType: fc.oneof(fc.constantFrom(...EVENT_TYPES), fc.string()),
      sessionId: fc.jsonValue(),
      providerUserId: fc.jsonValue(),
      aiNotesEnabled: fc.jsonValue(),
      payload: fc.oneof(fc.jsonValue(), fc.record({ jobId: fc.jsonValue(), userId: fc.string(), role: fc.string() })),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(event, fc.jsonValue()), (body) => {
      const parsed = parse(JSON.stringify(body));
      expect('reason' in parsed || EVENT_TYPES.includes(parsed.eventType)).toBe(true);
    }),
    { seed: SEED, numRuns: 2_000 },
  );
});
