import {
  applyDecorators,
  Body,
  type CallHandler,
  Controller,
  Delete,
  type ExecutionContext,
  Get,
  HttpCode,
  Injectable,
  type NestInterceptor,
  Param,
  type PipeTransform,
  Post,
  Put,
  Query,
  UseInterceptors,
} from '@nestjs/common';
import {
  ApiAcceptedResponse,
  ApiMovedPermanentlyResponse,
  ApiOkResponse,
  ApiOperation,
  ApiTags,
} from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { mergeMap } from 'rxjs';
import { Scopes } from '../../access/identity/scopes.js';
import { StepUp } from '../../access/identity/step-up.js';
import { PROBLEM_RESPONSE } from '../../http/problem/described-problem.js';
import { Problem } from '../../http/problem/problem.js';
import { RouteOptions } from '../../http/request/route-options.js';
import { ApiPrefer, disconnectOf, PreferWait, type Wait, waitOf } from '../../http/request/waiting.js';
import type { PersonKind } from '../rules/person.js';
import { EXTERNAL_ID_MAX, isExternalId, profileOf } from '../rules/person-field-rules.js';
import { IdentityService } from './identity.service.js';
import {
  CLIENT_BODY_LIMIT,
  ClientProvidersRequest,
  ClientRequest,
  ClientsQuery,
  MergeRequest,
  PeopleQuery,
  ProviderRequest,
  RenameRequest,
  ResolveRequest,
} from './people.dto.js';
import { PeopleService } from './people.service.js';
import { PersonPageResponse, PersonResponse } from './person-view.js';

const externalIdPipe: PipeTransform<unknown, string> = {
  transform(value) {
    if (isExternalId(value)) return value;
    const detail = `The external id in the path must have 1 to ${EXTERNAL_ID_MAX} characters, no control characters, and no spaces at its ends.`;
    throw new Problem('bad-external-id', detail);
  },
};

/** The validated `{externalId}` of the path. */
export const ExternalIdParam = (): ParameterDecorator => Param('externalId', externalIdPipe);

/** The state that each method asks for. The answer is 200 once the person has reached it, otherwise 202. */
const TARGET_STATES: Record<string, string> = { PUT: 'synced', DELETE: 'deleted' };

/** Waits until a changed person is settled, for as long as the caller prefers. */
@Injectable()
export class SettledInterceptor implements NestInterceptor<PersonResponse> {
  constructor(private readonly people: PeopleService) {}

  intercept(context: ExecutionContext, next: CallHandler<PersonResponse>) {
    const http = context.switchToHttp();
    const reply = http.getResponse<FastifyReply>();
    const target = TARGET_STATES[http.getRequest<FastifyRequest>().method];
    const signal = disconnectOf(context);
    return next.handle().pipe(
      mergeMap(async (changed) => {
        const view = await this.people.awaitSettled(changed, waitOf(context), signal);
        if (target) reply.code(view.sync.state === target ? 200 : 202);
        return view;
      }),
    );
  }
}

/** Decorates a route that changes a person and answers with it. */
const ChangesPerson = (done: string, kept?: string): MethodDecorator =>
  applyDecorators(
    Scopes('people:write'),
    UseInterceptors(SettledInterceptor),
    ApiPrefer(),
    ApiOkResponse({ type: PersonResponse, description: done }),
    ...(kept === undefined ? [] : [ApiAcceptedResponse({ type: PersonResponse, description: kept })]),
  );

/**
 * The routes that providers and clients share. Decorators describe its methods, because doc comments do not apply to
 * inherited methods.
 */
export abstract class PersonController {
  protected constructor(
    protected readonly people: PeopleService,
    protected readonly identities: IdentityService,
    private readonly kind: PersonKind,
  ) {}

  @Get(':externalId')
  @ApiOperation({ summary: 'Get a person and its sync state' })
  @Scopes('people:read')
  @ApiOkResponse({ type: PersonResponse })
  @ApiMovedPermanentlyResponse({ ...PROBLEM_RESPONSE, description: 'The id is a former one' })
  async get(@ExternalIdParam() externalId: string, @PreferWait() { seconds, signal }: Wait): Promise<PersonResponse> {
    return this.people.show({ kind: this.kind, externalId }, seconds, signal);
  }

  @Delete(':externalId')
  @StepUp()
  @ApiOperation({ summary: 'Delete a person here and on the platform' })
  @ChangesPerson('Deleted', 'Accepted; not deleted on the platform yet')
  async remove(@ExternalIdParam() externalId: string): Promise<PersonResponse> {
    return this.people.remove({ kind: this.kind, externalId });
  }

  @Post(':externalId/resolve')
  @StepUp(({ action }) => action === 'delete')
  @ApiOperation({ summary: 'Resolve a person manually' })
  @HttpCode(200)
  @ChangesPerson('')
  async resolve(
    @ExternalIdParam() externalId: string,
    @Body() { action, platformUserId }: ResolveRequest,
  ): Promise<PersonResponse> {
    return this.people.resolve({ kind: this.kind, externalId }, action, platformUserId);
  }

  @Post(':externalId/rename')
  @ApiOperation({ summary: 'Rename a person: only its external id changes' })
  @HttpCode(200)
  @ChangesPerson('Renamed, now or before')
  async rename(@ExternalIdParam() externalId: string, @Body() dto: RenameRequest): Promise<PersonResponse> {
    return this.identities.rename({ kind: this.kind, externalId }, dto.externalId);
  }
}

/** Providers: the clinicians of the EHR. */
@ApiTags('people')
@Controller('v1/providers')
export class ProvidersController extends PersonController {
  constructor(people: PeopleService, identities: IdentityService) {
    super(people, identities, 'provider');
  }

  /** List providers, by state; deleted ones only on request */
  @Get()
  @Scopes('people:read')
  async list(@Query() query: PeopleQuery): Promise<PersonPageResponse> {
    return this.people.page('provider', query);
  }

  /** Create or update a provider */
  @Put(':externalId')
  @ChangesPerson('Synced', 'Accepted; not synced yet')
  async put(@ExternalIdParam() externalId: string, @Body() body: ProviderRequest): Promise<PersonResponse> {
    return this.people.put({ kind: 'provider', externalId }, profileOf(body));
  }
}

/** Clients: the patients of the EHR. */
@ApiTags('people')
@Controller('v1/clients')
export class ClientsController extends PersonController {
  constructor(people: PeopleService, identities: IdentityService) {
    super(people, identities, 'client');
  }

  /** List clients, by state and provider; deleted ones only on request */
  @Get()
  @Scopes('people:read')
  async list(@Query() query: ClientsQuery): Promise<PersonPageResponse> {
    return this.people.page('client', query);
  }

  /** Create or update a client */
  @Put(':externalId')
  @RouteOptions({ bodyLimit: CLIENT_BODY_LIMIT })
  @ChangesPerson('Synced', 'Accepted; not synced yet')
  async put(@ExternalIdParam() externalId: string, @Body() body: ClientRequest): Promise<PersonResponse> {
    return this.people.put({ kind: 'client', externalId }, profileOf(body), body.providers);
  }

  /** Replace the providers of a client; the first is the primary */
  @Put(':externalId/providers')
  @RouteOptions({ bodyLimit: CLIENT_BODY_LIMIT })
  @ChangesPerson('Synced', 'Accepted; not synced yet')
  async putProviders(
    @ExternalIdParam() externalId: string,
    @Body() { providers }: ClientProvidersRequest,
  ): Promise<PersonResponse> {
    return this.people.putClientProviders(externalId, providers);
  }

  /**
   * Merge a client into another one; cannot be undone
   *
   * @remarks The other client keeps its name, email and providers. What was stated about the merged one is gone. Both users
   *   on the platform stay until the other client is deleted, which deletes both.
   */
  @Post(':externalId/merge')
  @StepUp()
  @HttpCode(200)
  @ChangesPerson('The other client; merged, now or before')
  async merge(@ExternalIdParam() externalId: string, @Body() dto: MergeRequest): Promise<PersonResponse> {
    return this.identities.merge(externalId, dto.into);
  }
}
