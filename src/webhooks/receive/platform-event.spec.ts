import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import type { Contract } from '../../platform/contract/contract.js';
import { EVENT_TYPES, type EventType, PLATFORM_ID_MAX } from '../../platform/contract/wire-types.js';
import { parseEvent } from './platform-event.js';

const parse = (body: unknown, located?: Contract['events']) =>
  parseEvent(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), located);

test('session fields are read at the top level', () => {
  const event = { eventType: 'SESSION_CREATED', sessionId: 's-1', providerUserId: 'p-1', aiNotesEnabled: null };
  expect(parse(event)).toEqual({
    event: { ...event, partnerAppointmentId: null },
    subject: 's-1',
  });
});

test('the fields of every other event are read in its payload', () => {
  const payload = { userId: 'u-1', role: 'Client', externalUserId: 'e-1' };
  expect(parse({ eventType: 'USER_CREATED', payload })).toEqual({
    event: { eventType: 'USER_CREATED', ...payload },
    subject: 'u-1',
  });
  expect(parse({ eventType: 'COMPLIANCE_JOB_FAILED', payload: { jobId: 'j-1' } })).toMatchObject({ subject: 'j-1' });
});

test('ids are read as they are written', () => {
  const id = '6F1C2A34-5b6d-4e7f-8a9b-0c1d2e3f4a5b';
  const session = { sessionId: id, providerUserId: id, partnerAppointmentId: id };
  expect(parse({ eventType: 'SESSION_CREATED', ...session })).toMatchObject({ subject: id, event: session });
});

const session = { sessionId: 's-1', providerUserId: 'p-1', partnerAppointmentId: 'visit-17', aiNotesEnabled: true };
const job = { payload: { jobId: 'j-1' } };
const WHOLE: Record<EventType, Record<string, unknown>> = {
  PROCESSING_SESSION_FINISHED: { payload: { processingId: 'x-1' } },
  PROCESSING_SESSION_NOTES_FINISHED: {},
  COMPLIANCE_JOB_COMPLETED: job,
  COMPLIANCE_JOB_FAILED: job,
  SMART_EDIT_JOB_COMPLETED: job,
  SMART_EDIT_JOB_FAILED: job,
  SESSION_CREATED: session,
  SESSION_PROCESSING_STARTED: session,
  SESSION_PROCESSING_NOTES_COMPLETED: session,
  SESSION_PROCESSING_COMPLETED: session,
  SESSION_PROCESSING_FAILED: session,
  USER_CREATED: { payload: { userId: 'u-1', externalUserId: 'C-1', role: 'Client' } },
};

/** An event with one field changed; undefined takes it away. */
function changed(eventType: EventType, pointer: string, value: unknown): { eventType: EventType; payload?: object } {
  const [, first = '', second] = pointer.split('/');
  const whole = WHOLE[eventType];
  const field = second === undefined ? value : { ...(whole[first] as object), [second]: value };
  return { eventType, ...whole, [first]: field };
}

/** The fields of an event, regardless of their level. */
function flat({ payload, ...fields }: { payload?: unknown; [field: string]: unknown }): Record<string, unknown> {
  return { ...fields, ...(payload as object | undefined) };
}

describe.each(EVENT_TYPES)('%s', (eventType) => {
  const isSession = eventType.startsWith('SESSION_');
  const required = {
    PROCESSING_SESSION_FINISHED: ['/payload/processingId'],
    PROCESSING_SESSION_NOTES_FINISHED: [],
    USER_CREATED: ['/payload/userId', '/payload/role'],
  } as Partial<Record<EventType, string[]>>;
  const needs = required[eventType] ?? (isSession ? ['/sessionId'] : ['/payload/jobId']);
  const optional = isSession
    ? ['/providerUserId', '/partnerAppointmentId', '/aiNotesEnabled']
    : eventType === 'USER_CREATED'
      ? ['/payload/externalUserId']
      : [];

  test('is understood with all its fields, and with unknown ones', () => {
    const body = { eventType, ...WHOLE[eventType] };
    expect(parse({ ...body, sentAt: 1 })).toMatchObject({ event: flat(body) });
  });

  test('is not understood without what it is about, or with a wrong type of it', () => {
    for (const pointer of needs) {
      for (const value of [undefined, null, '', 7, {}, ['x']]) {
        expect(parse(changed(eventType, pointer, value))).toMatchObject({ reason: `bad-field ${pointer}` });
      }
    }
  });

  test('every other field is null if it cannot be read, and the rest of the event is understood', () => {
    for (const pointer of optional) {
      const name = pointer.split('/').at(-1) ?? '';
      const event = { eventType, ...flat(WHOLE[eventType]), [name]: null };
      for (const value of [undefined, null, '', 7, 'x'.repeat(513), 'half \ud800', {}, ['x']]) {
        const parsed = parse(changed(eventType, pointer, value));
        expect('event' in parsed && parsed.event).toEqual(event);
      }
    }
  });

  test('an id has one limit here and where the EHR gives it', () => {
    for (const pointer of [...needs, ...optional].filter((at) => !/role|aiNotes/.test(at))) {
      const longest = changed(eventType, pointer, 'x'.repeat(PLATFORM_ID_MAX));
      expect(parse(longest)).toMatchObject({ event: flat(longest) });
    }
  });
});

test.each(['Client', 'HealthcareProvider', 'OrgAdmin'])('USER_CREATED may tell of a role %s', (role) => {
  expect(parse(changed('USER_CREATED', '/payload/role', role))).toHaveProperty('event');
});

test.each([true, false, null])('aiNotesEnabled may be %p', (aiNotesEnabled) => {
  expect(parse(changed('SESSION_CREATED', '/aiNotesEnabled', aiNotesEnabled))).toHaveProperty('event');
});

test.each([undefined, null, 'text', 7, [], {}, { anything: { deep: true } }])(
  'PROCESSING_SESSION_NOTES_FINISHED is understood with the payload %p, which the spec does not show',
  (payload) => {
    expect(parse({ eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload })).toHaveProperty('event');
  },
);

describe('ids that the contract locates', () => {
  const RULE = { sessionId: '/payload/session/id', processingId: '/payload/processingId' };
  const NOTHING = { sessionId: null, processingId: null };
  const eventType = 'PROCESSING_SESSION_NOTES_FINISHED';
  const read = (payload: unknown, rule?: Partial<typeof RULE>) =>
    parse({ eventType, payload }, rule && { [eventType]: rule });

  test('are not read without pointers', () => {
    const payload = { sessionId: 's-1', processingId: 'p-1', deep: { sessionId: 's-2' } };
    expect(read(payload)).toEqual({ event: { eventType, ...NOTHING }, subject: null });
  });

  test('are read only there', () => {
    const payload = { session: { id: 's-1' }, processingId: 'p-1', audit: { sessionId: 's-other' } };
    const both = { sessionId: 's-1', processingId: 'p-1' };
    expect(read(payload, RULE)).toMatchObject({ event: both, subject: 's-1' });
    expect(read({ audit: { sessionId: 's-other' } }, RULE)).toMatchObject({ event: NOTHING });
    const { sessionId, processingId } = RULE;
    expect(read(payload, { sessionId })).toMatchObject({ event: { sessionId: 's-1', processingId: null } });
    expect(read(payload, { processingId })).toMatchObject({ event: { sessionId: null }, subject: 'p-1' });
  });

  test('are about the session, in any order of the pointers', () => {
    const payload = { session: { id: 's-1' }, processingId: 'p-1' };
    const { sessionId, processingId } = RULE;
    expect(read(payload, { processingId, sessionId })).toMatchObject({ subject: 's-1' });
  });

  test.each([[''], [7], [null], [{}], ['x'.repeat(513)], ['a\0b'], ['\ud800'], [undefined]])(
    'are not read from %j',
    (id) => expect(read({ processingId: id }, RULE)).toMatchObject({ event: NOTHING }),
  );

  test.each([[null], ['text'], [[]], [undefined]])('are not read from the payload %j', (payload) =>
    expect(read(payload, RULE)).toMatchObject({ event: NOTHING }),
  );
});

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
  ['{"eventType":"PROCESSING_SESSION_FINISHED","payload":null}', 'bad-field /payload/processingId'],
  ['{"eventType":"USER_CREATED","payload":{"userId":"u","role":"Cook"}}', 'bad-field /payload/role'],
  ['{"eventType":"USER_CREATED","payload":{"__proto__":{"userId":"u"},"role":"Client"}}', 'bad-field /payload/userId'],
])('%s is not understood: %s', (text, reason) => {
  expect(parse(text)).toMatchObject({ reason });
});

test.each([
  ['nested 200,000 deep', `{"eventType":"SESSION_CREATED","sessionId":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
  ['of a million objects', `[${Array(1_000_000).fill('{}').join(',')}]`],
])('a body %s is too deep', (_what, text) => {
  expect(parseEvent(Buffer.from(text))).toEqual({ eventType: null, reason: 'too-deep' });
});

test('bytes that are not UTF-8 are not JSON, and a byte-order mark does no harm', () => {
  expect(parseEvent(Buffer.from('{"eventType":"\xff"}', 'latin1'))).toMatchObject({ reason: 'not-json' });
  const marked = '\ufeff{"eventType":"PROCESSING_SESSION_NOTES_FINISHED"}';
  expect(parse(marked)).toHaveProperty('subject', null);
});

test('an eventType that could hold personal data is not repeated', () => {
  expect(parse({ eventType: 'Jane Roe <jane@roe.example>' })).toEqual({
    eventType: null,
    reason: 'unknown-event-type',
  });
  expect(parse({ eventType: 'SESSION_RENAMED' })).toMatchObject({ eventType: 'SESSION_RENAMED' });
});

test('any genuine body is either understood or has a reason', () => {
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
      expect('reason' in parsed || EVENT_TYPES.includes(parsed.event.eventType)).toBe(true);
    }),
    propertyRuns(),
  );
});
