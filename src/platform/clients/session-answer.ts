import * as v from 'valibot';
import { SESSION_PARTS, type Session, sessionCore, sessionDocument } from '../contract/wire-types.js';

type SessionPart = keyof typeof SESSION_PARTS;

/** A Session of the platform as far as it could be read. */
export interface SessionAnswer extends Session {
  /** True when some of its documents could not be read: `notes` is not all that the platform has. */
  notesIncomplete?: boolean;
}

/**
 * Reads a Session as the spec lists its fields (Resources, Session); fields that the spec does not name are kept as they
 * are. An optional part that does not fit counts as absent, and so does each document of its notes by itself: the rest
 * of the Session is worth having. A reading ends at the first fault, so that an answer full of them costs no more.
 *
 * @returns the Session and its parts that were left out, or the JSON Pointer of the required field that does not fit
 */
export function readSession(value: unknown): { session: SessionAnswer; leftOut: SessionPart[] } | { fault: string } {
  const core = v.safeParse(sessionCore, value, { abortEarly: true });
  if (!core.success) return { fault: (core.issues[0].path ?? []).map(({ key }) => `/${key}`).join('') };
  const session = { ...(value as SessionAnswer) };
  const leftOut = (Object.keys(SESSION_PARTS) as SessionPart[]).filter(
    (part) => !v.is(SESSION_PARTS[part], session[part]),
  );
  for (const part of leftOut) {
    if (part !== 'notes' || !Array.isArray(session.notes)) delete session[part];
    else {
      session.notes = session.notes.filter((document) => v.is(sessionDocument, document));
      session.notesIncomplete = true;
    }
  }
  return { session, leftOut };
}
