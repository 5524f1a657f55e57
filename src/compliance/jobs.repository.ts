import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit, BEGUN } from '../audit/audit.js';
import { Database } from '../database/database.js';
import { PrismaService } from '../database/prisma.service.js';
import { decodeCursor, type Page, pageOf } from '../http/request/page.js';
import { UUID } from '../http/request/uuid-param.js';
import type { ComplianceJobsQuery } from './compliance.dto.js';
import { type ComplianceRequest, ComplianceSeal, JOB_TABLE, type JobRow, LANES } from './job.js';

const { columns: COLUMNS } = JOB_TABLE;

/** The jobs that were submitted here or known from events. */
@Injectable()
export class JobsRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly database: Database,
    private readonly seal: ComplianceSeal,
    private readonly audit: Audit,
  ) {}

  /** Finds a job by its id, that of its row or the platform's. */
  async find(id: string, tx: Pick<PoolClient, 'query'> = this.database.pool): Promise<JobRow | undefined> {
    const { rows } = await tx.query<JobRow>(
      `SELECT ${COLUMNS} FROM compliance_jobs t WHERE id = $1 OR shown_id = $1 OR job_id = $2
       ORDER BY job_id IS NOT DISTINCT FROM $2 LIMIT 1`,
      [UUID.test(id) ? id : null, id],
    );
    return rows[0];
  }

  /** One page, newest first. */
  async list({ state, review, limit, cursor }: ComplianceJobsQuery): Promise<Page<JobRow>> {
    const before = decodeCursor<[createdAt: string, id: string]>(cursor, 'time', 'uuid');
    const { rows } = await this.database.pool.query<JobRow>(
      `SELECT ${COLUMNS} FROM compliance_jobs t
       WHERE ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR review = $2)
         AND ($3::timestamptz IS NULL OR (created_at, id) < ($3, $4::uuid))
       ORDER BY created_at DESC, id DESC LIMIT $5`,
      [state ?? null, review ?? null, before?.[0] ?? null, before?.[1] ?? null, limit + 1],
    );
    return pageOf(rows, limit, ({ createdAt, id }) => [createdAt.toISOString(), id]);
  }

  /** Stores a job that is due to be submitted, unless an earlier run of the same request stored it. */
  keep(id: string, request: ComplianceRequest): Promise<JobRow> {
    return this.database.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO compliance_jobs (id, shown_id, state, request, lane, due_at)
         VALUES ($1, $1, 'Requested', $2, ${LANES.submissions}, clock_timestamp()) ON CONFLICT DO NOTHING`,
        [id, this.seal.request.seal(id, request)],
      );
      this.audit.about('compliance-job', id);
      await this.audit.store(await this.prisma.in(tx), BEGUN);
      return (await this.find(id, tx)) as JobRow;
    });
  }
}
