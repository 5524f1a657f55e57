import { isDeepStrictEqual } from 'node:util';
import { type SealedPlace, Vault } from '../../vault/vault.js';
import type { SessionRow } from './session-row.js';

/** What is sealed of a session's row as one value: whose the session is, when it was, and the platform's words. */
export interface SessionFacts {
  date: string | null;
  sessionCreatedAt: string | null;
  /** Whole milliseconds, like the following. */
  sessionDurationMs: string | null;
  recordingDurationMs: string | null;
  error: { code: string; message: string } | null;
}

/** The plain columns by which a session is found, and which its facts are bound to. */
export type SessionOwner = Pick<SessionRow, 'session_id' | 'provider_user_id' | 'client_user_ids'>;

/** A row with its facts, as they are now or were stored before there was the column. */
type FactsRow = SessionOwner & Pick<SessionRow, 'id' | 'facts' | (typeof FORMER_COLUMNS)[number]>;

const FORMER_COLUMNS = [
  'date',
  'session_created_at',
  'session_duration_ms',
  'recording_duration_ms',
  'error_code',
  'error_message',
] as const;

/** To be set with `facts`: what stood in plain columns before. */
export const FORMER_FACTS_EMPTIED = FORMER_COLUMNS.map((column) => `${column} = NULL`).join(', ');

/** Of a session of which nothing is known but its owner. */
export const NO_FACTS: SessionFacts = {
  date: null,
  sessionCreatedAt: null,
  sessionDurationMs: null,
  recordingDurationMs: null,
  error: null,
};

/** Codes of errors that hold no words of the platform's own choice. */
const PLAIN_CODES = ['low-content-transcript', 'platform-rejected', 'abandoned'];

/** The code of an error for what is stored plain, and for who may not read clinical text: the platform's own are open. */
export function plainCode(code: string): string {
  return PLAIN_CODES.includes(code) ? code : 'platform-error';
}

/** Facts without what the platform said of a failure. */
export function withoutWords(facts: SessionFacts): SessionFacts {
  const { error } = facts;
  return { ...facts, error: error && { code: plainCode(error.code), message: '' } };
}

/**
 * Seals the facts of sessions together with their owner. Whoever changes the plain columns of the owner without the key
 * (one UPDATE shows one client's notes under another) makes the facts and all content of the session unreadable; so
 * every statement of this service that sets one of them sets `facts`, too, with the row locked.
 */
export class SessionFactsSeal {
  constructor(private readonly vault: Vault) {}

  /** @param id ours @param owner as the same statement stores it */
  seal(id: string, owner: SessionOwner, facts: SessionFacts): Buffer {
    return this.vault.seal(placeOf(id), JSON.stringify({ owner: ownerOf(owner), ...facts }));
  }

  /** @throws {UnreadableValue} also when the row names another session, provider or client than its facts do */
  open(row: FactsRow): SessionFacts {
    const place = placeOf(row.id);
    if (row.facts === null) {
      if (this.vault.readsFormerLayout) return this.former(row);
      throw this.vault.refused(place);
    }
    const { owner, ...facts } = JSON.parse(this.vault.open(place, row.facts)) as SessionFacts & { owner: unknown };
    if (!isDeepStrictEqual(owner, ownerOf(row))) throw this.vault.refused(place);
    return facts;
  }

  private former(row: FactsRow): SessionFacts {
    const sealed = row.error_message;
    const place = { ...placeOf(row.id), column: 'error_message' };
    const message = sealed === null ? '' : (JSON.parse(this.vault.open(place, sealed)) as string);
    return {
      date: row.date,
      sessionCreatedAt: row.session_created_at,
      sessionDurationMs: row.session_duration_ms,
      recordingDurationMs: row.recording_duration_ms,
      error: row.error_code === null ? null : { code: row.error_code, message },
    };
  }
}

function ownerOf({ session_id, provider_user_id, client_user_ids }: SessionOwner): unknown {
  return [session_id, provider_user_id, client_user_ids];
}

function placeOf(id: string): SealedPlace {
  return { table: 'sessions', column: 'facts', row: id };
}
