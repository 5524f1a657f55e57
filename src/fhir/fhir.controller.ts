import { Controller, Get, Header, Headers, Param, Query, Req, Res } from '@nestjs/common';
import { ApiQuery, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Caller, type Principal, Public, Scopes } from '../access/identity/scopes.js';
import { Env } from '../config/env.js';
import { version } from '../config/version.js';
import { preferredType } from '../http/request/accept.js';
import { capabilityStatement } from './capability-statement.js';
import { ApiHandling, ApiResource, SEARCH_QUERY } from './fhir-description.js';
import { NoteReader } from './note-reader.js';
import { FHIR_JSON } from './operation-outcome.js';
import { isJsonFormat, notAcceptable, readNoteSearch } from './search/note-search.js';
import { searchset } from './search/searchset.js';

const CONTENT_TYPE = `${FHIR_JSON}; charset=utf-8`;

/** `Prefer: handling=strict` (FHIR R4 §3.1.1.4.2), which may be one of several preferences. */
const STRICT = /(?:^|[,;])\s*handling\s*=\s*"?strict\b/i;

/** Notes as FHIR R4 resources, to be read. Errors are OperationOutcomes (`FHIR_ERRORS`). */
@ApiTags('fhir')
@Controller('fhir')
export class FhirController {
  private readonly version = version();

  constructor(
    private readonly notes: NoteReader,
    private readonly env: Env,
  ) {}

  /** Describe the supported part of FHIR */
  @Get('metadata')
  @Public()
  @Header('content-type', CONTENT_TYPE)
  @ApiResource('CapabilityStatement', 'A FHIR R4 CapabilityStatement')
  metadata(@Req() request: FastifyRequest, @Headers('accept') accept: string | undefined): object {
    requireJson(accept, request);
    return capabilityStatement(this.baseOf(request), this.version);
  }

  /**
   * Search notes as FHIR documents
   *
   * @remarks Each note in its newest version. A search by patient or encounter needs the scope `sessions:read`, too.
   */
  @Get('DocumentReference')
  @Scopes('notes:read')
  @Header('content-type', CONTENT_TYPE)
  @ApiHandling()
  @SearchQuery()
  @ApiResource('Bundle', 'A FHIR R4 Bundle of type searchset, with a link to the next page')
  async search(
    @Caller() caller: Principal,
    @Req() request: FastifyRequest,
    @Headers() headers: Record<string, string | undefined>,
    @Query() query: Record<string, unknown>,
  ): Promise<object> {
    requireJson(headers.accept, request);
    const search = readNoteSearch(query, STRICT.test(headers.prefer ?? ''));
    return searchset(this.baseOf(request), search, await this.notes.search(search, caller));
  }

  /** Read a note as a FHIR document */
  @Get('DocumentReference/:id')
  @Scopes('notes:read')
  @Header('content-type', CONTENT_TYPE)
  @ApiResource('DocumentReference', 'A FHIR R4 DocumentReference')
  async read(
    @Caller() caller: Principal,
    @Req() request: FastifyRequest,
    @Param('id') id: string,
    @Headers('accept') accept: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<object> {
    requireJson(accept, request);
    const { resource, versionId, updatedAt } = await this.notes.read(id, caller);
    reply.header('etag', `W/"${versionId}"`).header('last-modified', updatedAt.toUTCString());
    return resource;
  }

  /** The absolute URL of this interface. */
  private baseOf({ protocol, host }: FastifyRequest): string {
    return `${this.env.PUBLIC_URL ?? `${protocol}://${host}`}/fhir`;
  }
}

/**
 * Checks that JSON is wanted. `_format` overrides Accept (FHIR R4 §3.1.0.1.11).
 *
 * @throws {Problem} 406 `not-acceptable`
 */
function requireJson(accept: string | undefined, { query }: FastifyRequest): void {
  const [format] = [(query as { _format?: string | string[] })._format].flat();
  const isJson = format ? isJsonFormat(format) : preferredType(accept, [FHIR_JSON, 'application/json']) !== undefined;
  if (!isJson) throw notAcceptable();
}

/** Documents the parameters of a search. */
function SearchQuery(): MethodDecorator {
  return (...place) => {
    for (const parameter of SEARCH_QUERY) ApiQuery(parameter)(...place);
  };
}
