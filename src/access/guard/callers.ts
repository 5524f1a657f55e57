import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import type { Principal } from '../identity/scopes.js';
import { unauthenticated } from '../identity/unauthenticated.js';
import { ADMIN_ID, KEY_IS_ALIVE } from '../keys/api-keys.js';
import { SESSION_IS_ALIVE } from '../sign-in/browser-sessions.js';
import { signedOut } from '../sign-in/session-cookie.js';

/** Places in the arrays of those who showed a key that is taken still and, where they did, a session that has not ended. */
const ALLOWED = `
  SELECT place::int FROM unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY AS asked (key, session, place)
  WHERE (key IS NULL OR EXISTS (SELECT FROM api_keys WHERE id = key AND ${KEY_IS_ALIVE}))
    AND (session IS NULL OR EXISTS (SELECT FROM browser_sessions WHERE token_hash = session AND ${SESSION_IS_ALIVE}))`;

/** Callers whose answers come later than their requests, or take long. */
@Injectable()
export class Callers {
  constructor(private readonly database: Database) {}

  /** Which of them would be let in still, in whichever process that ended. */
  async stillAllowed(callers: readonly Principal[]): Promise<ReadonlySet<Principal>> {
    const keys = callers.map(({ id, issuer }) => (issuer || id === ADMIN_ID ? null : id));
    const sessions = callers.map(({ session }) => session?.hash ?? null);
    const { rows } = await this.database.pool.query<{ place: number }>({
      name: 'callers-allowed',
      text: ALLOWED,
      values: [keys, sessions],
    });
    return new Set(rows.map(({ place }) => callers[place - 1] as Principal));
  }

  /** @throws {Problem} 401 `unauthenticated` or `signed-out` */
  async requireAllowed(caller: Principal): Promise<void> {
    if ((await this.stillAllowed([caller])).has(caller)) return;
    throw caller.session ? signedOut() : unauthenticated(true);
  }
}
