import { Controller, Get, Headers, Query, Res } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiTags, getSchemaPath } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { AuditPageResponse, AuditQuery, AuditResponse } from '../audit/audit.dto.js';
import { Audit } from '../audit/audit.js';
import { AuditRepository, namedSubjects } from '../audit/audit.repository.js';
import { SUBJECT_KINDS, type Subject, type SubjectKind, type SubjectRange } from '../audit/audit-record.js';
import { preferredType } from '../http/request/accept.js';
import { decodeCursor, pageOf } from '../http/request/page.js';
import { StreamedAnswers } from './guard/streamed-answers.js';
import { Caller, type Principal, Scopes } from './identity/scopes.js';

const LINES = 'application/x-ndjson';

/** Entries that each statement of an export reads. */
const EXPORT_BATCH = 500;

@ApiTags('access')
@Scopes('admin')
@Controller('v1/audit')
export class AuditController {
  constructor(
    private readonly audit: Audit,
    private readonly entries: AuditRepository,
    private readonly answers: StreamedAnswers,
  ) {}

  /**
   * List audit entries, newest first: a page, or all of them
   *
   * @remarks Accept: application/x-ndjson returns all matching entries, one per line.
   */
  @Get()
  @ApiExtraModels(AuditResponse, AuditPageResponse)
  @ApiOkResponse({
    description: 'A page, or lines for Accept: application/x-ndjson',
    content: {
      'application/json': { schema: { $ref: getSchemaPath(AuditPageResponse) } },
      [LINES]: { schema: { $ref: getSchemaPath(AuditResponse) } },
    },
  })
  async list(
    @Query() query: AuditQuery,
    @Headers('accept') accept: string | undefined,
    @Caller() caller: Principal,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const [beforeId] = decodeCursor<[string]>(query.cursor, 'bigint') ?? [];
    if (preferredType(accept, ['application/json', LINES]) === LINES) {
      const parts = await this.audit.parts(this.batches(query, beforeId), (rows) => rows.flatMap(subjectsOf));
      await this.answers.send(reply.header('content-type', LINES), caller, linesOf(parts));
      return;
    }
    const rows = await this.entries.find(query, query.limit + 1, beforeId);
    for (const [kinds, id] of rows.length > 0 ? namedSubjects(query) : []) {
      if (kinds !== SUBJECT_KINDS) this.audit.about(kinds[0], id);
    }
    this.audit.aboutAll(rows.slice(0, query.limit).flatMap(subjectsOf));
    await this.audit.commit();
    await reply.send(pageOf(rows, query.limit, ({ id }) => [id]));
  }

  /** Reads all matching entries in batches, newest first. */
  private async *batches(query: AuditQuery, beforeId: string | undefined): AsyncGenerator<AuditResponse[]> {
    for (let before = beforeId; ; ) {
      const rows = await this.entries.find(query, EXPORT_BATCH, before);
      if (rows.length > 0) yield rows;
      if (rows.length < EXPORT_BATCH) return;
      before = rows.at(-1)?.id;
    }
  }
}

/** The subjects and ranges that an entry shows. */
const subjectsOf = ({ subjects, ranges }: AuditResponse): (Subject | SubjectRange)[] => [
  ...Object.entries(subjects).flatMap(([kind, ids]) => ids.map((id): Subject => [kind as SubjectKind, id])),
  ...Object.entries(ranges).map(
    ([kind, { count, first, last }]): SubjectRange => [kind as SubjectKind, count, first, last],
  ),
];

/** One line of JSON for each entry. */
async function* linesOf(batches: AsyncIterable<AuditResponse[]>): AsyncGenerator<string> {
  for await (const rows of batches) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}
