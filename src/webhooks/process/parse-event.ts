import { decodeText, jsonShapeFault } from '../../http/body/json-text.js';
import { readPointer } from '../../platform/contract/json-pointer.js';
import {
  EVENT_TYPES,
  type EventType,
  isPlatformId,
  platformKey,
  USER_ROLES,
} from '../../platform/contract/wire-types.js';

/** An event whose subject is known; every other field that the spec states fits or is absent. */
export interface UnderstoodEvent {
  eventType: EventType;
  /** The id that the event is about; equal ones are handled one after the other. */
  subject: string;
  /** The subject as the platform spells it. */
  spelling: string;
  body: Record<string, unknown>;
}

/** An event type that may be shown although it is unknown: an identifier, nothing personal. */
const IDENTIFIER = /^[A-Za-z0-9_.-]{1,64}$/;

const KNOWN: ReadonlySet<string> = new Set(EVENT_TYPES);
const ROLES: ReadonlySet<unknown> = new Set(USER_ROLES);

/** Fields with ids of the platform; the other ids are the EHR's own. */
const PLATFORM_IDS = new Set(['sessionId', 'processingId', 'jobId', 'userId', 'providerUserId']);

/** Fields of an event (spec, Events), each with its check. */
interface Fields {
  readonly at: '' | '/payload';
  /** Without these the event says not what happened, or to what; the first is the subject. */
  readonly required: Readonly<Record<string, (value: unknown) => boolean>>;
  /** One of these that can't be read counts as absent: the event is not lost for it. */
  readonly optional?: Fields['required'];
}

const SESSION: Fields = {
  at: '',
  required: { sessionId: isPlatformId },
  optional: {
    providerUserId: isPlatformId,
    partnerAppointmentId: isPlatformId,
    aiNotesEnabled: (value) => typeof value === 'boolean',
  },
};
const JOB: Fields = { at: '/payload', required: { jobId: isPlatformId } };
const FIELDS: Record<EventType, Fields> = {
  PROCESSING_SESSION_FINISHED: { at: '/payload', required: { processingId: isPlatformId } },
  // The spec does not show its payload: whatever it holds is understood.
  PROCESSING_SESSION_NOTES_FINISHED: { at: '', required: {} },
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
    at: '/payload',
    // The role alone says who was created.
    required: { userId: isPlatformId, role: (value) => ROLES.has(value) },
    optional: { externalUserId: isPlatformId },
  },
};

/** Reads the body of a genuine delivery. @returns the event, or a reason why the body can't be acted on */
export function parseEvent(bytes: Uint8Array): UnderstoodEvent | { eventType: string | null; reason: string } {
  const text = decodeText(bytes);
  if (text !== undefined && jsonShapeFault(text)) return { eventType: null, reason: 'too-deep' };
  const body = parseJson(text);
  if (body === undefined) return { eventType: null, reason: 'not-json' };
  if (!isObject(body)) return { eventType: null, reason: 'not-an-object' };
  const { eventType } = body;
  if (typeof eventType !== 'string') return { eventType: null, reason: 'no-event-type' };
  if (!isEventType(eventType)) {
    return { eventType: IDENTIFIER.test(eventType) ? eventType : null, reason: 'unknown-event-type' };
  }
  const { at, required, optional = {} } = FIELDS[eventType];
  const holder = readPointer(body, at);
  const fields = isObject(holder) ? holder : {};
  const own = (name: string) => (Object.hasOwn(fields, name) ? fields[name] : undefined);
  const fault = Object.entries(required).find(([name, isValid]) => !isValid(own(name)));
  if (fault) return { eventType, reason: `bad-field ${at}/${fault[0]}` };
  for (const [name, isValid] of Object.entries(optional)) {
    const value = own(name);
    if (value !== null && !isValid(value)) Reflect.deleteProperty(fields, name);
  }
  const [first] = Object.keys(required);
  const spelling = first === undefined ? '' : String(own(first));
  for (const [name, value] of Object.entries(fields)) {
    if (PLATFORM_IDS.has(name) && typeof value === 'string') Reflect.set(fields, name, platformKey(value));
  }
  return { eventType, subject: platformKey(spelling), spelling, body };
}

function isEventType(value: string): value is EventType {
  return KNOWN.has(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseJson(text = ''): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
