import type { MediaTypeObject, RequestBodyObject, SchemaObject } from '@nestjs/swagger';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsInt,
  IsISO8601,
  IsOptional,
  IsString,
  IsUUID,
  Matches,
  ValidateNested,
} from 'class-validator';
import { VisibleTo } from '../../access/guard/visible-to.js';
import {
  fieldRule,
  ListOf,
  OneOf,
  OptionalListOf,
  OptionalOneOf,
  OptionalText,
  toBoolean,
} from '../../http/request/fields.js';
import { PageQuery, PageResponse } from '../../http/request/page.js';
import {
  type ImportKind,
  PLANNED_OUTCOMES,
  type PlannedOutcome,
  ROW_OUTCOMES,
  type RowOutcome,
} from '../model/import.js';
import { GUARD_NAMES, type GuardName } from '../model/import-guards.js';
import { FIELDS } from '../parse/row/import-row.js';

/** Maximum identifier systems of an import. */
const ID_SYSTEMS_MAX = 20;

/** Maximum rows of one correction. */
const CORRECTIONS_MAX = 1_000;

/** A field, or a field of one kind of people. */
const isColumnField = (name: string) =>
  FIELDS.some((field) => field === name.replace(/^(?:providers|clients|both)\./, ''));

/** Columns by field, such as `{externalId: "PAT_ID"}` or, for one kind only, `{"clients.externalId": "PAT_ID"}`. */
function isColumns(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.entries(value).every(
    ([field, column]) => isColumnField(field) && typeof column === 'string' && column.length <= 200,
  );
}

const Columns = fieldRule(
  'columns',
  isColumns,
  `must name columns by field, such as externalId or clients.externalId; fields: ${FIELDS.join(', ')}`,
);

/** Reads `externalId:PAT_ID,firstName:Vorname`. */
function toColumns({ value }: { value: unknown }): unknown {
  if (typeof value !== 'string') return value;
  const pairs = value.split(',').map((pair) => [pair.slice(0, pair.indexOf(':')), pair.slice(pair.indexOf(':') + 1)]);
  return Object.fromEntries(value === '' ? [] : pairs);
}

/** The query of `POST /v1/imports`. */
export class ImportQuery {
  /** The people that the files contain, unless their part is named providers or clients; detected from each file by default */
  @OptionalOneOf(['providers', 'clients', 'fhir'])
  kind?: Exclude<ImportKind, 'mixed'>;

  @ApiPropertyOptional()
  @OneOf(['upsert', 'snapshot'])
  mode: 'upsert' | 'snapshot' = 'upsert';

  @ApiPropertyOptional()
  @Transform(toBoolean)
  @IsBoolean({ message: 'must be true or false' })
  dryRun: boolean = false;

  /** External id of the provider for clients without one */
  @OptionalText(200)
  defaultProvider?: string;

  /** FHIR identifier systems whose value is the external id, separated by commas */
  @ApiPropertyOptional({ type: String, isArray: false })
  @Transform(({ value }) => (typeof value === 'string' ? value.split(',').filter((system) => system !== '') : value))
  @IsArray()
  @ArrayMaxSize(ID_SYSTEMS_MAX)
  @IsString({ each: true })
  idSystem: string[] = [];

  /** FHIR: encounters before this day are ignored. Defaults to 365 days ago */
  @ApiPropertyOptional({ format: 'date' })
  @IsOptional()
  @Matches(/^\d{4}-\d\d-\d\d$/, { message: 'must be a day, such as 2026-01-31' })
  @IsISO8601({ strict: true }, { message: 'must be a day, such as 2026-01-31' })
  encounterSince?: string;

  /** CSV: columns by field, such as `externalId:PAT_ID,firstName:Vorname`; prefix a field with `providers.` or `clients.` for one kind of file */
  @ApiPropertyOptional({ type: String })
  @Transform(toColumns)
  @Columns()
  columns: Record<string, string> = {};

  /** The import whose rejected rows this one corrects */
  @ApiPropertyOptional({ format: 'uuid' })
  @IsOptional()
  @IsUUID()
  correctionOf?: string;
}

/** `POST /v1/imports/{id}/mapping` */
export class MappingRequest {
  /** Columns by field; prefix a field with `providers.` or `clients.` for one kind of file */
  @ApiProperty({ type: 'object', additionalProperties: { type: 'string' }, example: { externalId: 'PAT_ID' } })
  @Columns()
  columns!: Record<string, string>;
}

/** The query of `GET /v1/imports/{id}/rows`. */
const ROW_ORDERS = ['file', 'newest'] as const;

export class ImportRowsQuery extends PageQuery {
  @OptionalOneOf(ROW_OUTCOMES)
  outcome?: RowOutcome;

  /** The rows behind a count of the plan */
  @OptionalOneOf(PLANNED_OUTCOMES)
  planned?: PlannedOutcome;

  /** The number of rows with this reason */
  @OptionalText(100)
  code?: string;

  /** newest: only rows that got an outcome since they were applied, the newest first */
  @OptionalOneOf(ROW_ORDERS)
  order?: (typeof ROW_ORDERS)[number];

  /** Shows the cells of rejected rows, so that they can be corrected */
  @ApiPropertyOptional()
  @Transform(toBoolean)
  @IsBoolean({ message: 'must be true or false' })
  cells: boolean = false;
}

/** The cells of a row as they were read; empty where there are none. */
export class ImportRowCells {
  kind!: string;
  externalId!: string;
  email!: string;
  firstName!: string;
  lastName!: string;
  /** Several are separated by | */
  providers!: string;
  platformUserId!: string;
}

/** A row of an import. */
export class ImportRowView {
  /** Number of the row within the import */
  row!: number;
  file!: string;
  line!: number;
  kind!: 'provider' | 'client' | null;
  externalId!: string | null;
  planned!: string | null;
  outcome!: RowOutcome;
  code!: string | null;
  field!: string | null;
  hint!: string | null;
  /** It was corrected in this import */
  corrected!: boolean;
  /** The cells of a rejected row, with `cells=true`; null if they are no longer stored, or could not be read */
  @VisibleTo('people:read')
  cells?: ImportRowCells | null;
}

export class ImportRowPageResponse extends PageResponse {
  items!: ImportRowView[];
}

/** `POST /v1/imports/{id}/apply` */
export class ApplyRequest {
  @OptionalListOf(GUARD_NAMES)
  override?: GuardName[];
}

/** Corrections of a rejected row. Absent fields keep the values that were read. */
export class CorrectedRow {
  /** Number of the row, if `file` and `line` do not identify it */
  @ApiPropertyOptional()
  @IsOptional()
  @IsInt()
  row?: number;

  @OptionalText(500)
  file?: string;

  @ApiPropertyOptional()
  @IsOptional()
  @IsInt()
  line?: number;

  @OptionalOneOf(['provider', 'client'])
  kind?: 'provider' | 'client';

  @OptionalText(1_000)
  externalId?: string;

  @OptionalText(1_000)
  email?: string;

  @OptionalText(1_000)
  firstName?: string;

  @OptionalText(1_000)
  lastName?: string;

  /** External ids, primary first */
  @ApiPropertyOptional({ type: [String] })
  @IsOptional()
  @ListOf('texts', (value) => typeof value === 'string' && value.length <= 1_000, 0)
  providers?: string[];

  @OptionalText(1_000)
  platformUserId?: string;
}

/** `PATCH /v1/imports/{id}/rows` */
export class CorrectionRequest {
  @IsArray()
  @ArrayMaxSize(CORRECTIONS_MAX)
  @ValidateNested({ each: true })
  @Type(() => CorrectedRow)
  rows!: CorrectedRow[];
}

const PEOPLE = 'CSV (text/csv) or JSON lines (application/x-ndjson)';

function raw(description: string, example?: string): MediaTypeObject {
  return { schema: { type: 'string', description }, ...(example !== undefined && { example }) };
}

function files(description: string): SchemaObject {
  return { type: 'array', items: { type: 'string', format: 'binary' }, description };
}

/** The body of `POST /v1/imports`: one file raw, or several as parts of a form. */
export const IMPORT_REQUEST_BODY: RequestBodyObject = {
  required: true,
  description: 'The kind of each file is detected, unless the query or the name of its part says it.',
  content: {
    'text/csv': raw(
      'A header, and one person per line; several providers are separated by |',
      'externalId,email,firstName,lastName,providers\nC-1,noor@mail.example,Noor,Haddad,P-1|P-2\n',
    ),
    'application/x-ndjson': raw(
      'One person per line, with the same fields',
      '{"externalId": "C-1", "firstName": "Noor", "lastName": "Haddad", "providers": ["P-1"]}\n',
    ),
    'application/fhir+ndjson': raw('FHIR R4: one Practitioner, Patient, PractitionerRole, … per line'),
    'application/fhir+json': raw('FHIR R4: one Bundle'),
    'multipart/form-data': {
      schema: {
        type: 'object',
        properties: {
          providers: files(`Providers, before the clients: ${PEOPLE}`),
          clients: files(`Clients: ${PEOPLE}`),
        },
        additionalProperties: { type: 'string', format: 'binary', description: 'Any file, by any name' },
      },
    },
  },
};
