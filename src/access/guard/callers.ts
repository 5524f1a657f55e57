import { Injectable } from '@nestjs/common';
import type { Principal } from '../identity/scopes.js';
import { unauthenticated } from '../identity/unauthenticated.js';
import { ApiKeysService } from '../keys/api-keys.service.js';
import { BrowserSessionsService } from '../sign-in/browser-sessions.service.js';
import { signedOut } from '../sign-in/session-cookie.js';

/** Callers whose answers come later than their requests, or take long. */
@Injectable()
export class Callers {
  constructor(
    private readonly keys: ApiKeysService,
    private readonly sessions: BrowserSessionsService,
  ) {}

  /** The callers whose key and session have not ended in any process. */
  async stillAllowed(callers: readonly Principal[]): Promise<ReadonlySet<Principal>> {
    const keys = await this.keys.stillAlive(callers.flatMap(({ id, issuer }) => (issuer ? [] : id)));
    const sessions = await this.sessions.stillAlive(callers.flatMap(({ session }) => session?.id ?? []));
    const isAllowed = ({ id, issuer, session }: Principal) =>
      (issuer || keys.has(id)) && (!session || sessions.has(session.id));
    return new Set(callers.filter(isAllowed));
  }

  /** @throws {Problem} 401 `unauthenticated` or `signed-out` */
  async requireAllowed(caller: Principal): Promise<void> {
    if ((await this.stillAllowed([caller])).has(caller)) return;
    throw caller.session ? signedOut() : unauthenticated(true);
  }
}
