import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { ArrayNotEmpty, ArrayUnique, IsIn, IsInt, IsString, Max, MaxLength, Min, MinLength } from 'class-validator';
import { OptionalMoment } from '../../http/request/fields.js';
import { PageResponse } from '../../http/request/page.js';
import { SCOPES, type Scope } from '../identity/scope.js';

const DAY_SECONDS = 86_400;

export class NewApiKeyRequest {
  /** What the key is for; not a person */
  @IsString()
  @MinLength(1)
  @MaxLength(100)
  name!: string;

  /** Only such as the calling key has itself */
  @ArrayNotEmpty()
  @ArrayUnique()
  @IsIn(SCOPES, { each: true })
  scopes!: Scope[];

  /** From when on it is no longer taken; without it, it is until it is revoked */
  @OptionalMoment()
  expiresAt?: string;
}

export class RotateApiKeyRequest {
  /** Seconds for which the old key is taken beside its successor; a day unless told, at most thirty */
  @ApiPropertyOptional()
  @IsInt()
  @Min(0)
  @Max(30 * DAY_SECONDS)
  overlapSeconds: number = DAY_SECONDS;

  /** When the successor expires; without it, it lives as long as its predecessor was to live */
  @OptionalMoment()
  expiresAt?: string;
}

export class ApiKeyResponse {
  @ApiProperty({ format: 'uuid' })
  id!: string;
  name!: string;
  /** The first characters of the key, for recognition */
  prefix!: string;
  scopes!: Scope[];
  createdAt!: Date;
  /** From when on it is no longer taken; null: until it is revoked */
  expiresAt!: Date | null;
  revokedAt!: Date | null;
  /** To the minute; null: never */
  lastUsedAt!: Date | null;

  /** Id of the key that takes its place */
  @ApiProperty({ type: String, format: 'uuid', nullable: true })
  rotatedTo!: string | null;
}

export class NewApiKeyResponse extends ApiKeyResponse {
  /** The key itself, shown this once */
  key!: string;
}

export class ApiKeyPageResponse extends PageResponse {
  items!: ApiKeyResponse[];
}
