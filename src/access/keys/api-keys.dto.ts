import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { ArrayNotEmpty, ArrayUnique, IsIn, IsInt, Max, Min } from 'class-validator';
import { fieldRule, OptionalMoment } from '../../http/request/fields.js';
import { PageResponse } from '../../http/request/page.js';
import { SCOPES, type Scope } from '../identity/scope.js';
import { isKeyName, type KeyWarning } from './key-rules.js';

const DAY_SECONDS = 86_400;

const IsKeyName = fieldRule(
  'isKeyName',
  isKeyName,
  'must be a name of 1 to 100 printable characters other than admin, system and unknown',
);

export class NewApiKeyRequest {
  /** The purpose of the key; not the name of a person */
  @Transform(({ value }) => (typeof value === 'string' ? value.trim() : value))
  @IsKeyName()
  name!: string;

  /** Only scopes that the caller has */
  @ArrayNotEmpty()
  @ArrayUnique()
  @IsIn(SCOPES, { each: true })
  scopes!: Scope[];

  /** When the key expires. Defaults to a year from now; null for a key that never expires */
  @OptionalMoment()
  @ApiPropertyOptional({ type: String, nullable: true })
  expiresAt?: string | null;
}

export class RotateApiKeyRequest {
  /** How long the old key is accepted alongside its successor. Defaults to a day; at most 30 days */
  @ApiPropertyOptional()
  @IsInt()
  @Min(0)
  @Max(30 * DAY_SECONDS)
  overlapSeconds: number = DAY_SECONDS;

  /** When the successor expires. Defaults to the lifetime of its predecessor; null for a key that never expires */
  @OptionalMoment()
  @ApiPropertyOptional({ type: String, nullable: true })
  expiresAt?: string | null;
}

export class ApiKeyResponse {
  @ApiProperty({ format: 'uuid' })
  id!: string;
  name!: string;
  /** The first characters of the key */
  prefix!: string;
  scopes!: Scope[];
  createdAt!: Date;
  /** When it expires; null if never */
  expiresAt!: Date | null;
  revokedAt!: Date | null;
  /** To the minute; null if it was never used */
  lastUsedAt!: Date | null;

  /** Id of its successor */
  @ApiProperty({ type: String, format: 'uuid', nullable: true })
  rotatedTo!: string | null;

  /**
   * `altered`: invalid, because its row was changed outside this service; revoke it. `unused`: for 90 days.
   * `expires-soon`: within 30 days, if it was created for more than 60
   */
  warnings!: KeyWarning[];
}

export class NewApiKeyResponse extends ApiKeyResponse {
  /** The key itself, shown only once */
  key!: string;
}

export class ApiKeyPageResponse extends PageResponse {
  items!: ApiKeyResponse[];
}
