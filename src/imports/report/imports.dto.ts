import type { MediaTypeObject, RequestBodyObject, SchemaObject } from '@nestjs/swagger';
import { ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { ArrayMaxSize, IsArray, IsBoolean, IsISO8601, IsOptional, IsString, Matches } from 'class-validator';
import { OneOf, OptionalListOf, OptionalOneOf, OptionalText } from '../../http/request/fields.js';
import { PageQuery, PageResponse } from '../../http/request/page.js';
import { PLANNED_OUTCOMES, type PlannedOutcome, ROW_OUTCOMES, type RowOutcome } from '../model/import.js';
import type { ImportKind } from '../parse/row/import-row.js';

/** Identifier systems of one import; each is a key more of everybody who is known. */
const ID_SYSTEMS_MAX = 20;

/** The query of `POST /v1/imports`. */
export class ImportQuery {
  @OneOf(['providers', 'clients', 'fhir'])
  kind!: ImportKind;

  @ApiPropertyOptional()
  @OneOf(['upsert', 'snapshot'])
  mode: 'upsert' | 'snapshot' = 'upsert';

  @ApiPropertyOptional()
  @Transform(({ value }) => ({ true: true, '1': true, '': true, false: false, '0': false })[String(value)] ?? value)
  @IsBoolean({ message: 'must be true or false' })
  dryRun: boolean = false;

  /** External id of the provider for clients that name none */
  @OptionalText(200)
  defaultProvider?: string;

  /** FHIR identifier systems whose value is the external id, comma-separated */
  @ApiPropertyOptional({ type: String, isArray: false })
  @Transform(({ value }) => (typeof value === 'string' ? value.split(',').filter((system) => system !== '') : value))
  @IsArray()
  @ArrayMaxSize(ID_SYSTEMS_MAX)
  @IsString({ each: true })
  idSystem: string[] = [];

  /**
   * FHIR: encounters before this day name no provider; otherwise those of the last 365 days before the newest date of
   * the files do
   */
  @ApiPropertyOptional({ format: 'date' })
  @IsOptional()
  @Matches(/^\d{4}-\d\d-\d\d$/, { message: 'must be a day, such as 2026-01-31' })
  @IsISO8601({ strict: true }, { message: 'must be a day, such as 2026-01-31' })
  encounterSince?: string;
}

/** The query of `GET /v1/imports/{id}/rows`. */
export class ImportRowsQuery extends PageQuery {
  @OptionalOneOf(ROW_OUTCOMES)
  outcome?: RowOutcome;

  /** The rows behind a count of the plan */
  @OptionalOneOf(PLANNED_OUTCOMES)
  planned?: PlannedOutcome;

  /** Shows the cells of rejected rows, to be corrected and sent again */
  @ApiPropertyOptional()
  @Transform(({ value }) => ({ true: true, '1': true, '': true, false: false, '0': false })[String(value)] ?? value)
  @IsBoolean({ message: 'must be true or false' })
  cells: boolean = false;
}

/** The cells of a row as they were read; empty where it has none. */
export class ImportRowCells {
  externalId!: string;
  email!: string;
  firstName!: string;
  lastName!: string;
  /** Several are split by | */
  providers!: string;
}

/** A row as it is shown. */
export class ImportRowView {
  file!: string;
  line!: number;
  kind!: 'provider' | 'client' | null;
  externalId!: string | null;
  planned!: string | null;
  outcome!: RowOutcome;
  code!: string | null;
  field!: string | null;
  hint!: string | null;
  /** With `cells=true`, of a rejected row; null: they are no longer kept, or could not be told apart */
  cells?: ImportRowCells | null;
}

export class ImportRowPageResponse extends PageResponse {
  items!: ImportRowView[];
}

/** `POST /v1/imports/{id}/apply`, and `/retry` */
export class ApplyRequest {
  @OptionalListOf(['deletes', 'providerRemovals'])
  override?: ('deletes' | 'providerRemovals')[];
}

const PEOPLE = 'CSV (text/csv) or JSON lines (application/x-ndjson)';

function raw(description: string, example?: string): MediaTypeObject {
  return { schema: { type: 'string', description }, ...(example !== undefined && { example }) };
}

function files(description: string): SchemaObject {
  return { type: 'array', items: { type: 'string', format: 'binary' }, description };
}

/** What `POST /v1/imports` takes, as OpenAPI has it: one file raw, or several as parts of a form. */
export const IMPORT_REQUEST_BODY: RequestBodyObject = {
  required: true,
  description: 'Raw people are of the kind that the query names.',
  content: {
    'text/csv': raw(
      'A header and one person a line; several providers are split by |',
      'externalId,email,firstName,lastName,providers\nC-1,noor@mail.example,Noor,Haddad,P-1|P-2\n',
    ),
    'application/x-ndjson': raw(
      'One person a line, with the same fields',
      '{"externalId": "C-1", "firstName": "Noor", "lastName": "Haddad", "providers": ["P-1"]}\n',
    ),
    'application/fhir+ndjson': raw('FHIR R4: one Practitioner, Patient, PractitionerRole, … a line; with kind=fhir'),
    'application/fhir+json': raw('FHIR R4: one Bundle; with kind=fhir'),
    'multipart/form-data': {
      schema: {
        type: 'object',
        properties: { providers: files(`Providers: ${PEOPLE}`), clients: files(`Clients: ${PEOPLE}`) },
        additionalProperties: { type: 'string', format: 'binary', description: 'FHIR, by any name; with kind=fhir' },
      },
    },
  },
};
