import { isPlatformId } from '../../platform/contract/platform-id.js';
import { EVENT_TYPES, type EventType, USER_ROLES } from '../../platform/contract/wire-types.js';

/** An event that is understood: its subject is told, and every other field that the spec states fits or is absent. */
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

/** An event type that we may show although we do not know it: a word of a program, nothing personal. */
const WORD = /^[A-Za-z0-9_.-]{1,64}$/;

const KNOWN: ReadonlySet<string> = new Set(EVENT_TYPES);
const ROLES: ReadonlySet<unknown> = new Set(USER_ROLES);

type Check = (value: unknown) => boolean;

const isFlag: Check = (value) => typeof value === 'boolean';
const isRole: Check = (value) => ROLES.has(value);

/** JSON Pointers to the fields of an event (spec, Events). */
interface Fields {
  /** Without these nobody can tell what happened, or to what; the first is the subject. */
  readonly needed?: readonly (readonly [string, Check])[];
  /** One of these that can't be read counts as absent: the event is not lost for it. */
  readonly more?: readonly (readonly [string, Check])[];
}

const SESSION: Fields = {
  needed: [['/sessionId', isPlatformId]],
  more: [
    ['/providerUserId', isPlatformId],
    ['/partnerAppointmentId', isPlatformId],
    ['/aiNotesEnabled', isFlag],
  ],
};
const JOB: Fields = { needed: [['/payload/jobId', isPlatformId]] };
const FIELDS: Record<EventType, Fields> = {
  PROCESSING_SESSION_FINISHED: { needed: [['/payload/processingId', isPlatformId]] },
  // Its payload is not shown: whatever it holds is understood.
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
    // Who was created is told by the role alone.
    needed: [
      ['/payload/userId', isPlatformId],
      ['/payload/role', isRole],
    ],
    more: [['/payload/externalUserId', isPlatformId]],
  },
};

/** Reads the raw body of a genuine delivery, in either shape: fields in `payload`, or at the top level. */
export function parseEvent(bytes: Uint8Array): UnderstoodEvent | NotUnderstood {
  const body = parseJson(bytes);
  if (body === undefined) return { eventType: null, reason: 'not-json' };
  if (!isObject(body)) return { eventType: null, reason: 'not-an-object' };
  const { eventType } = body;
  if (typeof eventType !== 'string') return { eventType: null, reason: 'no-event-type' };
  if (!isEventType(eventType)) {
    return { eventType: WORD.test(eventType) ? eventType : null, reason: 'unknown-event-type' };
  }
  const { needed = [], more = [] } = FIELDS[eventType];
  const fault = needed.find(([pointer, check]) => !check(at(body, pointer)));
  if (fault) return { eventType, reason: `bad-field ${fault[0]}` };
  for (const [pointer, check] of more) {
    const value = at(body, pointer);
    if (value !== null && !check(value)) remove(body, pointer);
  }
  const [first] = needed;
  return { eventType, subject: first ? String(at(body, first[0])) : '', body };
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

const stepsOf = (pointer: string): string[] => pointer.slice(1).split('/');

function at(event: Record<string, unknown>, pointer: string): unknown {
  let value: unknown = event;
  for (const step of stepsOf(pointer)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

function remove(event: Record<string, unknown>, pointer: string): void {
  const steps = stepsOf(pointer);
  const last = steps.pop() ?? '';
  const holder = steps.length === 0 ? event : at(event, `/${steps.join('/')}`);
  if (isObject(holder)) Reflect.deleteProperty(holder, last);
}
