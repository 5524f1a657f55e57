import { ApiProperty } from '@nestjs/swagger';
import { ArrayNotEmpty, ArrayUnique, IsIn, IsString, MaxLength, MinLength } from 'class-validator';
import { PageResponse } from '../../http/request/page.js';
import { SCOPES, type Scope } from '../identity/scopes.js';

export class NewApiKeyRequest {
  /** What the key is for; not a person */
  @IsString()
  @MinLength(1)
  @MaxLength(100)
  name!: string;

  @ArrayNotEmpty()
  @ArrayUnique()
  @IsIn(SCOPES, { each: true })
  scopes!: Scope[];
}

export class ApiKeyResponse {
  @ApiProperty({ format: 'uuid' })
  id!: string;
  name!: string;
  /** The first characters of the key, for recognition */
  prefix!: string;
  scopes!: Scope[];
  createdAt!: Date;
  revokedAt!: Date | null;
}

export class NewApiKeyResponse extends ApiKeyResponse {
  /** The key itself, shown this once */
  key!: string;
}

export class ApiKeyPageResponse extends PageResponse {
  items!: ApiKeyResponse[];
}
