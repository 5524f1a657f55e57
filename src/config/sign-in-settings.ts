import { Flag, IsIssuer, SetTogether, WholeNumber } from './setting-rules.js';

/** The settings of the OpenID provider: all or none. */
const OIDC_SETTINGS = [
  'OIDC_ISSUER',
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'OIDC_SCOPES_CLAIM',
  'OIDC_SCOPES',
] as const;

/** How people and keys sign in. */
export abstract class SignInSettings {
  /** The OpenID provider at which people sign in to the console, as it spells itself. */
  @SetTogether(OIDC_SETTINGS) @IsIssuer() OIDC_ISSUER?: string;

  @SetTogether(OIDC_SETTINGS) OIDC_CLIENT_ID?: string;

  @SetTogether(OIDC_SETTINGS) OIDC_CLIENT_SECRET?: string;

  /** The claim of the ID token that names the groups or roles of a person. */
  @SetTogether(OIDC_SETTINGS) OIDC_SCOPES_CLAIM?: string;

  /** The scopes of each group or role, as JSON. */
  @SetTogether(OIDC_SETTINGS) OIDC_SCOPES?: string;

  /** Whether a key can sign in to the console. */
  @Flag() CONSOLE_KEY_SIGN_IN: boolean = true;

  /** How long the console may be unused before the session of its browser ends. */
  @WholeNumber(1, 480) SESSION_IDLE_MINUTES: number = 30;

  /** Whether each request with a key must name the EHR's user. Then keys cannot sign in, because they name no person. */
  @Flag() REQUIRE_ON_BEHALF_OF: boolean = false;

  /** True if a key opens a browser session. */
  get allowsKeySignIn(): boolean {
    return this.CONSOLE_KEY_SIGN_IN && !this.REQUIRE_ON_BEHALF_OF;
  }
}
