import { ApiProperty } from '@nestjs/swagger';
import { IsString, MaxLength, MinLength } from 'class-validator';
import { PageResponse } from '../../http/request/page.js';
import { SCOPES, type Scope } from '../identity/scope.js';

/** The signed-in user. */
export class SignedInResponse {
  /** Id of the key (`admin` for ADMIN_API_KEY), or the person's id at the issuer */
  id!: string;
  name!: string;
  /** The OpenID provider of the person; null for a key */
  issuer!: string | null;
}

export class CallerResponse extends SignedInResponse {
  @ApiProperty({ enum: SCOPES, isArray: true })
  scopes!: Scope[];
}

export class BrowserSessionResponse {
  caller!: CallerResponse;
  /** To be sent as `X-CSRF-Token` with every change */
  csrfToken!: string;
  /** When it ends unless it is used: requests with `Notebridge-In-Use: true` move it, up to eight hours after the sign-in */
  expiresAt!: Date;
  idleMinutes!: number;
  /** When the caller last authenticated; null if the provider does not report it */
  authenticatedAt!: Date | null;
}

export class ListedSessionResponse {
  @ApiProperty({ format: 'uuid' })
  id!: string;
  caller!: SignedInResponse;
  /** True for the session of this request */
  isCurrent!: boolean;
  createdAt!: Date;
  authenticatedAt!: Date | null;
  /** To the minute */
  lastSeenAt!: Date;
  expiresAt!: Date;
}

export class ListedSessionPageResponse extends PageResponse {
  items!: ListedSessionResponse[];
}

export class StepUpRequest {
  /** The key with which the session was opened */
  @IsString()
  @MinLength(1)
  @MaxLength(512)
  key!: string;
}

export class SignInMethodsResponse {
  /** True if browsers can sign in with a key */
  key!: boolean;
  /** The host of the OpenID provider; its sign-in starts at /v1/sign-in. Null if there is none */
  provider!: string | null;
}
