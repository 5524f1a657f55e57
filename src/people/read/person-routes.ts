import { Body, Delete, Get, HttpCode, Param, type PipeTransform, Post, Query, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { AuditedRead } from '../../access/audit/audit.interceptor.js';
import { Scopes } from '../../access/identity/scopes.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { ClientDisconnect, PreferWait } from '../../http/request/waiting.js';
import type { PeopleService } from '../desired/people.service.js';
import type { PersonKind, PersonState } from '../model/person.js';
import { EXTERNAL_ID_MAX, isExternalId } from '../model/person-field-rules.js';
import { PersonResponse } from '../model/person-view.js';
import { PeopleQuery, ResolveRequest } from './people.dto.js';

class ExternalIdPipe implements PipeTransform<unknown, string> {
  transform(value: unknown): string {
    if (isExternalId(value)) return value;
    const detail = `The external id in the path must have 1 to ${EXTERNAL_ID_MAX} characters, without control characters or blanks at its ends.`;
    throw new Problem(400, 'bad-external-id', detail);
  }
}

/** The `{externalId}` of the path, checked. */
export const ExternalIdParam = (): ParameterDecorator => Param('externalId', new ExternalIdPipe());

/**
 * What the EHR asks of people in the same way, whichever their kind. The file isn't named a controller's, since metadata
 * of inherited methods can't be applied: their decorators describe them.
 */
export abstract class PersonController {
  protected constructor(
    protected readonly people: PeopleService,
    private readonly kind: PersonKind,
  ) {}

  @Get(':externalId')
  @ApiOperation({ summary: 'One of them, and where the mirroring stands' })
  @Scopes('people:read')
  @AuditedRead()
  @ApiOkResponse({ type: PersonResponse })
  async get(
    @ExternalIdParam() externalId: string,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<PersonResponse> {
    return this.people.show({ kind: this.kind, externalId }, wait, signal);
  }

  @Get()
  @ApiOperation({ summary: 'All that are not deleted, by state if asked' })
  @Scopes('people:read')
  @AuditedRead()
  async list(@Query() query: PeopleQuery): Promise<Page<PersonResponse>> {
    const [after] = decodeCursor<[string]>(query.cursor, 'string') ?? [];
    const views = await this.people.list(this.kind, query.state, query.limit + 1, after);
    return pageOf(
      views,
      query.limit,
      (view) => [view.externalId],
      (view) => view,
    );
  }

  @Delete(':externalId')
  @ApiOperation({ summary: 'Deletes one here and on the platform' })
  @Scopes('people:write')
  @ApiOkResponse({ type: PersonResponse, description: 'Deleted' })
  @ApiAcceptedResponse({ type: PersonResponse, description: 'Kept; not deleted on the platform yet' })
  async remove(
    @ExternalIdParam() externalId: string,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PersonResponse> {
    const view = await this.people.remove({ kind: this.kind, externalId });
    return this.answer(reply, view, 'deleted', wait, signal);
  }

  @Post(':externalId/resolve')
  @ApiOperation({ summary: 'Resolves manually what the service could not settle' })
  @HttpCode(200)
  @Scopes('people:write')
  @ApiOkResponse({ type: PersonResponse })
  async resolve(
    @ExternalIdParam() externalId: string,
    @Body() dto: ResolveRequest,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<PersonResponse> {
    const view = await this.people.resolve({ kind: this.kind, externalId }, dto.action, dto.platformUserId);
    return this.people.awaitSettled(view, wait, signal);
  }

  /** Waits until a person that was changed is settled: 200 when it has reached the state that was asked for, else 202. */
  protected async answer(
    reply: FastifyReply,
    changed: PersonResponse,
    reached: PersonState,
    wait: number,
    signal: AbortSignal,
  ): Promise<PersonResponse> {
    const view = await this.people.awaitSettled(changed, wait, signal);
    reply.code(view.sync.state === reached ? 200 : 202);
    return view;
  }
}
