import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { StreamedAnswers } from '../../access/guard/streamed-answers.js';
import { Caller, type Principal, Scopes } from '../../access/identity/scopes.js';
import { Audit } from '../../audit/audit.js';
import type { Subject } from '../../audit/audit-record.js';
import { Database, prepared } from '../../database/database.js';
import { csvLine } from '../../http/csv-line.js';
import { PERSON_KINDS, type PersonKind } from '../model/person.js';

/** People read by one query. */
const PAGE = 1_000;

/** Without people whose deletion was requested, because importing them again would revoke it. */
const READ = `SELECT external_id AS "externalId", platform_user_id AS "platformUserId" FROM people
  WHERE kind = $1 AND external_id > $2 AND wanted ORDER BY external_id LIMIT ${PAGE}`;

interface CsvPage {
  kind: PersonKind;
  rows: { externalId: string; platformUserId: string | null }[];
}

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

  /** Export all people with their platform users as CSV for imports */
  @Get()
  @ApiOkResponse({ content: { 'text/csv': { schema: { type: 'string' } } } })
  async all(@Caller() caller: Principal, @Res() reply: FastifyReply): Promise<void> {
    const pages = await this.audit.parts(this.pages(), ({ kind, rows }) =>
      rows.map((row): Subject => [kind, row.externalId]),
    );
    reply.header('content-type', 'text/csv; charset=utf-8');
    reply.header('content-disposition', 'attachment; filename="people.csv"');
    await this.answers.send(reply, caller, csvOf(pages));
  }

  /** All people page by page: memory stays constant, no matter how many people there are. */
  private async *pages(): AsyncGenerator<CsvPage> {
    for (const kind of PERSON_KINDS) {
      let after: string | undefined = '';
      while (after !== undefined) {
        const { rows }: { rows: CsvPage['rows'] } = await this.database.pool.query(prepared(READ, [kind, after]));
        yield { kind, rows };
        after = rows.length < PAGE ? undefined : rows.at(-1)?.externalId;
      }
    }
  }
}

async function* csvOf(pages: AsyncIterable<CsvPage>): AsyncGenerator<string> {
  yield csvLine(['kind', 'externalId', 'platformUserId']);
  for await (const { kind, rows } of pages)
    yield rows.map((row) => csvLine([kind, row.externalId, row.platformUserId ?? ''])).join('');
}
