import { Controller, Get, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Caller, type Principal, Public, Scopes } from '../access/identity/scopes.js';
import { Env } from '../config/env.js';
import { version } from '../config/version.js';
import { Problem } from '../http/problem/problem.js';
import { preferredType } from '../http/request/accept.js';
import { RouteOptions } from '../http/request/route-options.js';
import { mediaTypeOf } from '../text/json-text.js';
import { capabilityStatement } from './capability-statement.js';
import { ApiResource, SearchForm, SearchQuery } from './fhir-description.js';
import { NoteReader } from './note-reader.js';
import { FHIR_JSON } from './operation-outcome.js';
import { type Parameter, readNoteSearch } from './search/note-search.js';
import { MAX_FORM_BYTES, parametersOfForm, parametersOfQuery } from './search/parameters.js';
import { searchset } from './search/searchset.js';

const FORMATS = ['json', 'application/json', FHIR_JSON];

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
  @ApiResource('CapabilityStatement', 'A FHIR R4 CapabilityStatement')
  metadata(@Req() request: FastifyRequest): object {
    requireJson(request, parametersOfQuery(request));
    return capabilityStatement(this.baseOf(request), this.version);
  }

  /**
   * Search notes as FHIR documents
   *
   * @remarks Each note in its newest version. A search by patient needs the scope `sessions:read`, too.
   */
  @Get('DocumentReference')
  @Scopes('notes:read')
  @SearchQuery()
  @ApiResource('Bundle', 'A FHIR R4 Bundle of type searchset, with a link to the next page')
  search(@Caller() caller: Principal, @Req() request: FastifyRequest): Promise<object> {
    return this.found(parametersOfQuery(request), caller, request);
  }

  /**
   * Search notes as FHIR documents, with the parameters in the body
   *
   * @remarks As the search by GET, without ids in the URL. Parameters in the URL count, too.
   */
  @Post('DocumentReference/_search')
  @HttpCode(200)
  @Scopes('notes:read')
  @RouteOptions({ body: 'bytes', bodyLimit: MAX_FORM_BYTES })
  @SearchForm()
  @ApiResource('Bundle', 'A FHIR R4 Bundle of type searchset, with a link to the next page')
  searchByPost(@Caller() caller: Principal, @Req() request: FastifyRequest): Promise<object> {
    return this.found([...parametersOfQuery(request), ...parametersOfForm(request)], caller, request);
  }

  /** Read a note as a FHIR document */
  @Get('DocumentReference/:id')
  @Scopes('notes:read')
  @ApiResource('DocumentReference', 'A FHIR R4 DocumentReference')
  async read(
    @Caller() caller: Principal,
    @Req() request: FastifyRequest,
    @Param('id') id: string,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<object> {
    requireJson(request, parametersOfQuery(request));
    const note = await this.notes.read(id, caller);
    const { versionId, lastUpdated } = note.meta;
    reply.header('etag', `W/"${versionId}"`).header('last-modified', new Date(lastUpdated).toUTCString());
    return note;
  }

  private async found(given: Parameter[], caller: Principal, request: FastifyRequest): Promise<object> {
    requireJson(request, given);
    const search = readNoteSearch(given);
    return searchset(this.baseOf(request), search, await this.notes.search(search, caller));
  }

  /** The absolute URL of this interface. */
  private baseOf({ protocol, host }: FastifyRequest): string {
    return `${this.env.PUBLIC_URL ?? `${protocol}://${host}`}/fhir`;
  }
}

/**
 * Checks that JSON is wanted. `_format` overrides Accept (FHIR R4 §3.1.0.1.11). Its + arrives as a space if it is not escaped.
 * Parameters do not matter, as in Accept.
 *
 * @throws {Problem} 406 `not-acceptable`
 */
function requireJson({ headers }: FastifyRequest, given: Parameter[]): void {
  const formats = given.filter(([name, value]) => name === '_format' && value !== '').map(([, value]) => value);
  const isJson =
    formats.length > 0
      ? formats.every((format) => FORMATS.includes(mediaTypeOf(format).replace(' ', '+')))
      : preferredType(headers.accept, [FHIR_JSON, 'application/json']) !== undefined;
  if (!isJson) throw new Problem('not-acceptable', 'FHIR resources are available as application/fhir+json.');
}
