import { randomBytes } from 'node:crypto';
import type { NowMs } from '../timers.js';

/**
 * Access to the recorder: the partner's server obtains single-use tokens, each exchanged once for a browser session.
 * Tokens are secrets, so they come from the machine's randomness and not from the seed.
 */
export class RecorderAccess {
  private readonly tokens = new Map<string, { providerUserId: string; expiresAt: number }>();
  private readonly browsers = new Map<string, string>();

  constructor(
    private readonly nowMs: NowMs,
    private readonly lifeSeconds: () => number,
  ) {}

  issue(providerUserId: string): string {
    const token = randomBytes(24).toString('base64url');
    this.tokens.set(token, { providerUserId, expiresAt: this.nowMs() + this.lifeSeconds() * 1_000 });
    return token;
  }

  /** The provider of a token, which stays valid. Undefined if the token is unknown, used or expired. */
  ownerOf(token: string): string | undefined {
    const issued = this.tokens.get(token);
    return issued && issued.expiresAt > this.nowMs() ? issued.providerUserId : undefined;
  }

  /** Uses a token up. @returns the key of a new browser session; undefined if the token is not valid */
  redeem(token: string): string | undefined {
    const providerUserId = this.ownerOf(token);
    this.tokens.delete(token);
    if (providerUserId === undefined) return undefined;
    const browser = randomBytes(24).toString('base64url');
    this.browsers.set(browser, providerUserId);
    return browser;
  }

  /** The provider of a browser session. */
  providerOf(browser: string): string | undefined {
    return this.browsers.get(browser);
  }
}
