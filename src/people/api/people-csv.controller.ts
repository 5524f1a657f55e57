import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Audit } from '../../access/audit/audit.js';
import { StreamedAnswers } from '../../access/guard/streamed-answers.js';
import { Caller, type Principal, Scopes } from '../../access/identity/scopes.js';
import { Database, prepared } from '../../database/database.js';
import { csvLine } from '../../http/csv-line.js';
import { PERSON_KINDS } from '../model/person.js';

/** People read by one query. */
const PAGE = 1_000;

/** Without people whose deletion was requested, because importing them again would revoke it. */
const READ = `SELECT external_id AS "externalId", platform_user_id AS "platformUserId" FROM people
  WHERE kind = $1 AND external_id > $2 AND wanted ORDER BY external_id LIMIT ${PAGE}`;

/** People with their platform users, as a file that links them again when it is imported. */
@ApiTags('people')
@Controller('v1/people.csv')
@Scopes('people:read')
export class PeopleCsvController {
  constructor(
    private readonly database: Database,
    private readonly answers: StreamedAnswers,
    private readonly audit: Audit,
  ) {}

  /** All people with their platform users as CSV, which can be imported again */
  @Get()
  @ApiOkResponse({ content: { 'text/csv': { schema: { type: 'string' } } } })
  async all(@Caller() caller: Principal, @Res() reply: FastifyReply): Promise<void> {
    await this.audit.commit();
    reply.header('content-type', 'text/csv; charset=utf-8');
    reply.header('content-disposition', 'attachment; filename="people.csv"');
    await this.answers.send(reply, caller, this.pages());
  }

  /** The file page by page: memory stays constant, no matter how many people there are. */
  private async *pages(): AsyncGenerator<string> {
    yield csvLine(['kind', 'externalId', 'platformUserId']);
    for (const kind of PERSON_KINDS) {
      let after: string | undefined = '';
      while (after !== undefined) {
        const statement = prepared(READ, [kind, after]);
        const { rows } = await this.database.pool.query<{ externalId: string; platformUserId: string | null }>(
          statement,
        );
        yield rows.map((row) => csvLine([kind, row.externalId, row.platformUserId ?? ''])).join('');
        after = rows.length < PAGE ? undefined : rows.at(-1)?.externalId;
      }
    }
  }
}
