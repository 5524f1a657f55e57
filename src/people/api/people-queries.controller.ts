import { Body, Controller, Get, HttpCode, Param, Post, Query, Res } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { StreamedAnswers } from '../../access/guard/streamed-answers.js';
import { Caller, type Principal, Scopes } from '../../access/identity/scopes.js';
import { Audit } from '../../audit/audit.js';
import type { Subject } from '../../audit/audit-record.js';
import { PrismaService } from '../../database/prisma.service.js';
import { decodeCursor, PageQuery, pageOf } from '../../http/request/page.js';
import { RouteOptions } from '../../http/request/route-options.js';
import { csvLine } from '../../text/csv-line.js';
import { PERSON_KINDS } from '../rules/person.js';
import type { StoredPerson } from '../store/person-row.js';
import { PlatformUsersRepository } from '../store/platform-users.repository.js';
import {
  IDS_BODY_LIMIT,
  NamesRequest,
  RetryQuery,
  SearchRequest,
  SelectionRequest,
  SelectionResponse,
  TraceRequest,
} from './people.dto.js';
import { PeopleLookup } from './people-lookup.service.js';
import { PeopleSelection } from './people-selection.service.js';
import {
  NamesResponse,
  PersonPageResponse,
  PlatformUserResponse,
  UnknownPlatformUserPageResponse,
} from './person-view.js';
import { TraceResponse } from './trace.dto.js';

/** Queries about people of both kinds. They call nothing on the platform. */
@ApiTags('people')
@Controller('v1/people')
@Scopes('people:read')
export class PeopleController {
  constructor(
    private readonly people: PeopleLookup,
    private readonly users: PlatformUsersRepository,
    private readonly selection: PeopleSelection,
    private readonly audit: Audit,
  ) {}

  /** List platform users that the EHR does not know */
  @Get('unknown-to-ehr')
  async unknownToEhr(@Query() { cursor, limit }: PageQuery): Promise<UnknownPlatformUserPageResponse> {
    const [after] = decodeCursor<[string]>(cursor, 'string') ?? [''];
    const page = pageOf(await this.users.list(limit + 1, after), limit, (user) => [user.platformUserId]);
    this.audit.about('platform-user', ...page.items.map((user) => user.platformUserId));
    return page;
  }

  /** Get a platform user and its person */
  @Get('platform-users/:platformUserId')
  async platformUser(@Param('platformUserId') platformUserId: string): Promise<PlatformUserResponse> {
    return this.people.platformUser(platformUserId);
  }

  /**
   * Find people by email or external id
   *
   * @remarks An email also finds the person whose account on the platform has it, although the EHR has changed it since.
   */
  @Post('search')
  @HttpCode(200)
  async search(@Body() dto: SearchRequest): Promise<PersonPageResponse> {
    return { items: await this.people.search(dto), nextCursor: null };
  }

  /**
   * Resolve a selection of people manually
   *
   * @remarks Count with `dryRun` first, and send the count to resolve no more than these. It leaves out people that do not
   *   accept the action, and those that change while it runs. Retried people come after those who are due already; none
   *   accepts a retry whose reason only the EHR or another action can end. To link people, import a CSV file with the column
   *   `platformUserId`.
   */
  @Post('resolve')
  @RouteOptions({ bodyLimit: IDS_BODY_LIMIT })
  @HttpCode(200)
  @Scopes('people:write')
  resolve(@Body() dto: SelectionRequest): Promise<SelectionResponse> {
    return this.selection.resolve(dto);
  }

  /**
   * Retry all people that need a review or have failed for one reason
   *
   * @remarks As `POST /v1/people/resolve` with the action `retry`.
   */
  @Post('retry')
  @HttpCode(200)
  @Scopes('people:write')
  retry(@Query() query: RetryQuery): Promise<SelectionResponse> {
    return this.selection.resolve({ ...query, action: 'retry' });
  }

  /**
   * Get the names of people by external id
   *
   * @remarks Unknown and deleted people are absent.
   */
  @Post('names')
  @RouteOptions({ bodyLimit: IDS_BODY_LIMIT })
  @HttpCode(200)
  async names(@Body() dto: NamesRequest): Promise<NamesResponse> {
    return { items: await this.people.names(dto) };
  }

  /** Trace a person: its state, next step and reasons; sends nothing */
  @Post('trace')
  @HttpCode(200)
  async trace(@Body() dto: TraceRequest): Promise<TraceResponse> {
    return this.people.trace(dto);
  }
}

/** People read by one query. */
const PAGE = 1_000;

const CSV_FIELDS = { kind: true, externalId: true, platformUserId: true } as const;

type CsvRow = Pick<StoredPerson, keyof typeof CSV_FIELDS>;

/** People with their platform users, as a file that links them again when it is imported. */
@ApiTags('people')
@Controller('v1/people.csv')
@Scopes('people:read')
export class PeopleCsvController {
  constructor(
    private readonly prisma: PrismaService,
    private readonly answers: StreamedAnswers,
    private readonly audit: Audit,
  ) {}

  /** Export all people with their platform users as CSV for imports */
  @Get()
  @ApiOkResponse({ content: { 'text/csv': { schema: { type: 'string' } } } })
  async all(@Caller() caller: Principal, @Res() reply: FastifyReply): Promise<void> {
    const pages = await this.audit.parts(this.pages(), (rows) =>
      rows.map(({ kind, externalId }): Subject => [kind, externalId]),
    );
    reply.header('content-type', 'text/csv; charset=utf-8');
    reply.header('content-disposition', 'attachment; filename="people.csv"');
    await this.answers.send(reply, caller, csvOf(pages));
  }

  /** All people page by page: memory stays constant, no matter how many people there are. */
  private async *pages(): AsyncGenerator<CsvRow[]> {
    for (const kind of PERSON_KINDS) {
      let rows: CsvRow[] = [];
      do {
        // Without people whose deletion was requested, because importing them again would revoke it.
        const where = { kind, externalId: { gt: rows.at(-1)?.externalId ?? '' }, wanted: true };
        rows = await this.prisma.person.findMany({
          where,
          orderBy: { externalId: 'asc' },
          take: PAGE,
          select: CSV_FIELDS,
        });
        yield rows;
      } while (rows.length === PAGE);
    }
  }
}

async function* csvOf(pages: AsyncIterable<CsvRow[]>): AsyncGenerator<string> {
  yield csvLine(['kind', 'externalId', 'platformUserId']);
  for await (const rows of pages)
    yield rows
      .map(({ kind, externalId, platformUserId }) => csvLine([kind, externalId, platformUserId ?? '']))
      .join('');
}
