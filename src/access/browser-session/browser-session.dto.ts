import { ApiProperty } from '@nestjs/swagger';
import { SCOPES, type Scope } from '../identity/scope.js';

/** The key that a browser acts as. */
export class BrowserSessionKeyResponse {
  /** Id of the key, or `admin` for ADMIN_API_KEY */
  id!: string;
  name!: string;
  @ApiProperty({ enum: SCOPES, isArray: true })
  scopes!: Scope[];
}

export class BrowserSessionResponse {
  key!: BrowserSessionKeyResponse;
  /** To be sent as `X-CSRF-Token` with every change */
  csrfToken!: string;
  expiresAt!: Date;
}
