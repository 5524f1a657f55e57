import { EVENT_TYPES, type EventType, USER_ROLES } from '../platform/wire-types.js';

/** An event that is understood: the fields that the spec states for its type are there. */
export interface UnderstoodEvent {
  eventType: EventType;
  /** The id that the event is about; equal ones are handled one after the other. */
  subject: string;
  body: Record<string, unknown>;
}

/** A genuine body that can't be acted on, however often it is sent. */
export interface NotUnderstood {
  /** As far as it could be read. */
  eventType: string | null;
  /** A code: `not-json`, `not-an-object`, `no-event-type`, `unknown-event-type`, or `bad-field` and a JSON Pointer. */
  reason: string;
}

/** Characters of an id; the platform's are UUIDs. */
const LONGEST_ID = 500;

/** An event type that we may show although we do not know it: a word of a program, nothing personal. */
const WORD = /^[A-Za-z0-9_.-]{1,64}$/;

const KNOWN: ReadonlySet<string> = new Set(EVENT_TYPES);
const ROLES: ReadonlySet<unknown> = new Set(USER_ROLES);

type Check = (value: unknown) => boolean;

/** What no database keeps: NULs, and halves of characters. */
const UNFIT = /[\0\p{Cs}]/u;

const isId: Check = (value) =>
  typeof value === 'string' && value !== '' && value.length <= LONGEST_ID && !UNFIT.test(value);
const isOptionalId: Check = (value) => value === undefined || value === null || value === '' || isId(value);
const isOptionalFlag: Check = (value) => value === undefined || value === null || typeof value === 'boolean';

/** JSON Pointers to what an event must hold (spec, Events); the first is its subject. */
const SESSION: [string, Check][] = [
  ['/sessionId', isId],
  ['/providerUserId', isId],
  ['/partnerAppointmentId', isOptionalId],
  ['/aiNotesEnabled', isOptionalFlag],
];
const JOB: [string, Check][] = [['/payload/jobId', isId]];
const FIELDS: Record<EventType, [string, Check][]> = {
  PROCESSING_SESSION_FINISHED: [['/payload/processingId', isId]],
  // Its payload is not shown: whatever it holds is understood.
  PROCESSING_SESSION_NOTES_FINISHED: [],
  COMPLIANCE_JOB_COMPLETED: JOB,
  COMPLIANCE_JOB_FAILED: JOB,
  SMART_EDIT_JOB_COMPLETED: JOB,
  SMART_EDIT_JOB_FAILED: JOB,
  SESSION_CREATED: SESSION,
  SESSION_PROCESSING_STARTED: SESSION,
  SESSION_PROCESSING_NOTES_COMPLETED: SESSION,
  SESSION_PROCESSING_COMPLETED: SESSION,
  SESSION_PROCESSING_FAILED: SESSION,
  USER_CREATED: [
    ['/payload/userId', isId],
    ['/payload/externalUserId', isOptionalId],
    ['/payload/role', (value) => ROLES.has(value)],
  ],
};

/** Reads the raw body of a genuine delivery, in either shape: fields in `payload`, or at the top level. */
export function parseEvent(bytes: Uint8Array): UnderstoodEvent | NotUnderstood {
  const body = parseJson(bytes);
  if (body === undefined) return { eventType: null, reason: 'not-json' };
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return { eventType: null, reason: 'not-an-object' };
  }
  const event = body as Record<string, unknown>;
  const { eventType } = event;
  if (typeof eventType !== 'string') return { eventType: null, reason: 'no-event-type' };
  if (!isEventType(eventType)) {
    return { eventType: WORD.test(eventType) ? eventType : null, reason: 'unknown-event-type' };
  }
  const fields = FIELDS[eventType];
  const fault = fields.find(([pointer, check]) => !check(at(event, pointer)));
  if (fault) return { eventType, reason: `bad-field ${fault[0]}` };
  const [first] = fields;
  return { eventType, subject: first ? String(at(event, first[0])) : '', body: event };
}

function isEventType(value: string): value is EventType {
  return KNOWN.has(value);
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    // A byte-order mark is dropped; bytes that are not UTF-8 throw.
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function at(event: Record<string, unknown>, pointer: string): unknown {
  let value: unknown = event;
  for (const step of pointer.slice(1).split('/')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}
