import { ApiProperty } from '@nestjs/swagger';
import { ArrayNotEmpty, ArrayUnique, IsIn, IsString, MaxLength, MinLength } from 'class-validator';
import { SCOPES, type Scope } from '../identity/scopes.js';
import type { ApiKeyRow } from './api-keys.repository.js';

export class NewApiKeyBody {
  @ApiProperty({ type: String, minLength: 1, maxLength: 100, description: 'What the key is for; not a person' })
  @IsString()
  @MinLength(1)
  @MaxLength(100)
  name!: string;

  @ApiProperty({ enum: SCOPES, isArray: true })
  @ArrayNotEmpty()
  @ArrayUnique()
  @IsIn(SCOPES, { each: true })
  scopes!: Scope[];
}

export class ApiKeyAnswer {
  @ApiProperty({ type: String, format: 'uuid' })
  id: string;

  @ApiProperty({ type: String })
  name: string;

  @ApiProperty({ type: String, description: 'The first characters of the key, for recognition' })
  prefix: string;

  @ApiProperty({ enum: SCOPES, isArray: true })
  scopes: Scope[];

  @ApiProperty({ type: String, format: 'date-time' })
  createdAt: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  revokedAt: string | null;

  constructor(row: ApiKeyRow) {
    this.id = row.id;
    this.name = row.name;
    this.prefix = row.prefix;
    this.scopes = row.scopes;
    this.createdAt = row.createdAt.toISOString();
    this.revokedAt = row.revokedAt?.toISOString() ?? null;
  }
}

export class NewApiKeyAnswer extends ApiKeyAnswer {
  @ApiProperty({ type: String, description: 'The key itself, shown this once' })
  key: string;

  constructor(row: ApiKeyRow, key: string) {
    super(row);
    this.key = key;
  }
}

export class ApiKeyPage {
  @ApiProperty({ type: ApiKeyAnswer, isArray: true })
  items!: ApiKeyAnswer[];

  @ApiProperty({ type: String, nullable: true })
  nextCursor!: string | null;
}
