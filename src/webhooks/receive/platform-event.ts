import type { Contract } from '../../platform/contract/contract.js';
import { readPointer } from '../../platform/contract/json-pointer.js';
import {
  EVENT_TYPES,
  type EventType,
  isPlatformId,
  type JobEventType,
  type SessionEvent,
  USER_ROLES,
  type UserRole,
} from '../../platform/contract/wire-types.js';
import { isJsonObject, parseJson } from '../../text/json-object.js';
import { decodeText, jsonShapeFault } from '../../text/json-text.js';

/** The fields of an event that its handler uses. An optional field is null if it is missing or invalid. */
export type PlatformEvent =
  | SessionEvent
  | { eventType: JobEventType; jobId: string }
  | { eventType: 'PROCESSING_SESSION_FINISHED'; processingId: string }
  | { eventType: 'PROCESSING_SESSION_NOTES_FINISHED'; sessionId: string | null; processingId: string | null }
  | { eventType: 'USER_CREATED'; userId: string; role: UserRole; externalUserId: string | null };

export interface UnderstoodEvent {
  event: PlatformEvent;
  /** The id that the event is about, if any. It is the first id of the platform in the event. */
  subject: string | null;
}

/** Why a body is not understood. */
export type EventFault =
  | 'not-json'
  | 'too-deep'
  | 'not-an-object'
  | 'no-event-type'
  | 'unknown-event-type'
  | `bad-field ${string}`;

export interface UnknownEvent {
  /** Null if the body contains none that can be shown. */
  eventType: string | null;
  reason: EventFault;
}

/** The fields of an event (spec, Events). */
interface Fields {
  /** JSON Pointer to their object. Undefined if the spec does not show it: the contract file may locate each field. */
  at: '' | '/payload' | undefined;
  /** An event without one of these is not understood. */
  required: string[];
  optional?: string[];
}

const JOB: Fields = { at: '/payload', required: ['jobId'] };
const SESSION: Fields = {
  at: '',
  required: ['sessionId'],
  optional: ['providerUserId', 'partnerAppointmentId', 'aiNotesEnabled'],
};
const FIELDS: Record<EventType, Fields> = {
  PROCESSING_SESSION_FINISHED: { at: '/payload', required: ['processingId'] },
  PROCESSING_SESSION_NOTES_FINISHED: { at: undefined, required: [], optional: ['sessionId', 'processingId'] },
  COMPLIANCE_JOB_COMPLETED: JOB,
  COMPLIANCE_JOB_FAILED: JOB,
  SMART_EDIT_JOB_COMPLETED: JOB,
  SMART_EDIT_JOB_FAILED: JOB,
  SESSION_CREATED: SESSION,
  SESSION_PROCESSING_STARTED: SESSION,
  SESSION_PROCESSING_NOTES_COMPLETED: SESSION,
  SESSION_PROCESSING_COMPLETED: SESSION,
  SESSION_PROCESSING_FAILED: SESSION,
  USER_CREATED: { at: '/payload', required: ['userId', 'role'], optional: ['externalUserId'] },
};

/** Ids that the platform makes. The EHR makes the others. */
const PLATFORM_IDS = ['sessionId', 'processingId', 'jobId', 'userId', 'providerUserId'];

/** The form of an unknown event type that may be shown, because it cannot be personal data. */
const IDENTIFIER = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * Reads the body of a genuine delivery.
 *
 * @param located where the contract file locates ids
 * @returns the event, or the reason why it is not understood
 */
export function parseEvent(bytes: Uint8Array, located: Contract['events'] = {}): UnderstoodEvent | UnknownEvent {
  const text = decodeText(bytes) ?? '';
  if (jsonShapeFault(text)) return { eventType: null, reason: 'too-deep' };
  const body = parseJson(text);
  if (body === undefined) return { eventType: null, reason: 'not-json' };
  if (!isJsonObject(body)) return { eventType: null, reason: 'not-an-object' };
  const named = body.eventType;
  if (typeof named !== 'string') return { eventType: null, reason: 'no-event-type' };
  const eventType = EVENT_TYPES.find((type) => type === named);
  if (!eventType) return { eventType: IDENTIFIER.test(named) ? named : null, reason: 'unknown-event-type' };

  const { at, required, optional = [] } = FIELDS[eventType];
  const locations: Record<string, string | undefined> = located.PROCESSING_SESSION_NOTES_FINISHED ?? {};
  const event: Record<string, unknown> = { eventType };
  let subject: string | null = null;
  for (const name of [...required, ...optional]) {
    const pointer = at === undefined ? locations[name] : `${at}/${name}`;
    const value = readField(name, pointer === undefined ? undefined : readPointer(body, pointer));
    if (value === null && required.includes(name)) return { eventType, reason: `bad-field ${pointer}` };
    event[name] = value;
    if (typeof value === 'string' && PLATFORM_IDS.includes(name)) subject ??= value;
  }
  return { event: event as unknown as PlatformEvent, subject };
}

/** A field's value, or null if it is missing or invalid. */
function readField(name: string, value: unknown): string | boolean | null {
  if (name === 'aiNotesEnabled') return typeof value === 'boolean' ? value : null;
  if (name === 'role') return USER_ROLES.find((role) => role === value) ?? null;
  return isPlatformId(value) ? value : null;
}
