import { EVENT_TYPES, type EventType, isPlatformId, USER_ROLES } from '../../platform/contract/wire-types.js';

/** An event whose subject is known; every other field that the spec states fits or is absent. */
export interface UnderstoodEvent {
  eventType: EventType;
  /** The id that the event is about; equal ones are handled one after the other. */
  subject: string;
  body: Record<string, unknown>;
}

/** An event type that may be shown although it is unknown: an identifier, nothing personal. */
const IDENTIFIER = /^[A-Za-z0-9_.-]{1,64}$/;

const KNOWN: ReadonlySet<string> = new Set(EVENT_TYPES);
const ROLES: ReadonlySet<unknown> = new Set(USER_ROLES);

type Field = readonly [pointer: string, isValid: (value: unknown) => boolean];

/** JSON Pointers to the fields of an event (spec, Events), of one or two steps. */
interface Fields {
  /** Without these the event says not what happened, or to what; the first is the subject. */
  readonly required?: readonly Field[];
  /** One of these that can't be read counts as absent: the event is not lost for it. */
  readonly optional?: readonly Field[];
}

const SESSION: Fields = {
  required: [['/sessionId', isPlatformId]],
  optional: [
    ['/providerUserId', isPlatformId],
    ['/partnerAppointmentId', isPlatformId],
    ['/aiNotesEnabled', (value) => typeof value === 'boolean'],
  ],
};
const JOB: Fields = { required: [['/payload/jobId', isPlatformId]] };
const FIELDS: Record<EventType, Fields> = {
  PROCESSING_SESSION_FINISHED: { required: [['/payload/processingId', isPlatformId]] },
  // The spec does not show its payload: whatever it holds is understood.
  PROCESSING_SESSION_NOTES_FINISHED: {},
  COMPLIANCE_JOB_COMPLETED: JOB,
  COMPLIANCE_JOB_FAILED: JOB,
  SMART_EDIT_JOB_COMPLETED: JOB,
  SMART_EDIT_JOB_FAILED: JOB,
  SESSION_CREATED: SESSION,
  SESSION_PROCESSING_STARTED: SESSION,
  SESSION_PROCESSING_NOTES_COMPLETED: SESSION,
  SESSION_PROCESSING_COMPLETED: SESSION,
  SESSION_PROCESSING_FAILED: SESSION,
  USER_CREATED: {
    // The role alone says who was created.
    required: [
      ['/payload/userId', isPlatformId],
      ['/payload/role', (value) => ROLES.has(value)],
    ],
    optional: [['/payload/externalUserId', isPlatformId]],
  },
};

/**
 * Reads the raw body of a genuine delivery, in either shape: fields in `payload`, or at the top level.
 *
 * @returns the event; of a body that can't be acted on, however often it is sent, why: `not-json`, `not-an-object`,
 *   `no-event-type`, `unknown-event-type`, or `bad-field` and a JSON Pointer
 */
export function parseEvent(bytes: Uint8Array): UnderstoodEvent | { eventType: string | null; reason: string } {
  const body = parseJson(bytes);
  if (body === undefined) return { eventType: null, reason: 'not-json' };
  if (!isObject(body)) return { eventType: null, reason: 'not-an-object' };
  const { eventType } = body;
  if (typeof eventType !== 'string') return { eventType: null, reason: 'no-event-type' };
  if (!isEventType(eventType)) {
    return { eventType: IDENTIFIER.test(eventType) ? eventType : null, reason: 'unknown-event-type' };
  }
  const { required = [], optional = [] } = FIELDS[eventType];
  const fault = required.find(([pointer, isValid]) => !isValid(valueAt(body, pointer)));
  if (fault) return { eventType, reason: `bad-field ${fault[0]}` };
  for (const [pointer, isValid] of optional) {
    const value = valueAt(body, pointer);
    const { holder, name } = locate(body, pointer);
    if (value !== null && !isValid(value) && holder) Reflect.deleteProperty(holder, name);
  }
  const [first] = required;
  return { eventType, subject: first ? String(valueAt(body, first[0])) : '', body };
}

function isEventType(value: string): value is EventType {
  return KNOWN.has(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    // A byte-order mark is dropped; bytes that are not UTF-8 throw.
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function locate(event: Record<string, unknown>, pointer: string) {
  const [, first = '', second] = pointer.split('/');
  if (second === undefined) return { holder: event, name: first };
  const inner = event[first];
  return { holder: isObject(inner) ? inner : undefined, name: second };
}

function valueAt(event: Record<string, unknown>, pointer: string): unknown {
  const { holder, name } = locate(event, pointer);
  return holder && Object.hasOwn(holder, name) ? holder[name] : undefined;
}
