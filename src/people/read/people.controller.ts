import { Body, Controller, Get, HttpCode, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { decodeCursor, type Page, PageQuery, pageOf } from '../../http/request/page.js';
import { PeopleService } from '../desired/people.service.js';
import type { PersonResponse } from '../model/person-view.js';
import { PlatformUsersRepository, type UnknownPlatformUser } from '../store/platform-users.repository.js';
import { SearchRequest, TraceRequest } from './people.dto.js';
import { type StuckPerson, StuckRepository } from './stuck.repository.js';
import { type Trace, TraceService } from './trace.service.js';

/** Questions about people of either kind; nothing is sent to the platform. */
@ApiTags('people')
@Controller('v1/people')
export class PeopleController {
  constructor(
    private readonly people: PeopleService,
    private readonly traces: TraceService,
    private readonly users: PlatformUsersRepository,
    private readonly stuckPeople: StuckRepository,
  ) {}

  /** People who have been in one state for too long, the oldest first */
  @Get('stuck')
  @Scopes('people:read')
  async stuck(@Query() query: PageQuery): Promise<Page<StuckPerson>> {
    const [since, id] = decodeCursor<[string, string]>(query.cursor, 'time', 'uuid') ?? [];
    const people = await this.stuckPeople.list(query.limit + 1, since && id ? { since, id } : undefined);
    return pageOf(
      people,
      query.limit,
      (person) => [person.since, person.id],
      ({ id: _, ...person }) => person,
    );
  }

  /** Users of the platform whom the EHR does not know */
  @Get('unknown-to-ehr')
  @Scopes('people:read')
  async unknownToEhr(@Query() query: PageQuery): Promise<Page<UnknownPlatformUser>> {
    const [after] = decodeCursor<[string]>(query.cursor, 'string') ?? [''];
    const users = await this.users.list(query.limit + 1, after);
    return pageOf(
      users,
      query.limit,
      (user) => [user.platformUserId],
      (user) => user,
    );
  }

  /** Finds people by email or external id */
  @Post('search')
  @HttpCode(200)
  @Scopes('people:read')
  async search(@Body() dto: SearchRequest): Promise<Page<PersonResponse>> {
    return { items: await this.people.search(dto), nextCursor: null };
  }

  /** What is wanted, known and next of a person, and why; sends nothing */
  @Post('trace')
  @HttpCode(200)
  @Scopes('people:read')
  async trace(@Body() dto: TraceRequest): Promise<Trace> {
    return this.traces.trace(dto);
  }
}
