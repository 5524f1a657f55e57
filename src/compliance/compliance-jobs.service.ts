import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { pollUntil } from '../database/poll-until.js';
import { PrismaService } from '../database/prisma.service.js';
import { Problem } from '../http/problem/problem.js';
import type { Page } from '../http/request/page.js';
import { type Wait } from '../http/request/waiting.js';
import { openIfReadable } from '../vault/unreadable-value.js';
import { COMPLIANCE_CODES, LOOKUP_FAILED } from '../words/compliance-words.js';
import type { CodeOf } from '../words/words.js';
import type {
  ComplianceJobResponse,
  ComplianceJobsQuery,
  ListedJobResponse,
  ResolveJobRequest,
} from './compliance.dto.js';
import { ComplianceSeal, type JobRow, type LockedJob } from './job-row.js';
import { ENDED, errorCode, isResolvable, NO_FAULT, outdated } from './job-rules.js';
import { JobsRepository } from './jobs.repository.js';

const CHOICES = [
  { action: 'link', does: 'Links this submission to the given job of the platform and looks it up. Nothing is sent.' },
  { action: 'abandon', does: 'Ends the job without a result. To have the files checked, submit them again.' },
] as const;

const ONLY_OPEN =
  'Only a job whose submission got no answer, or whose result cannot be read, can be resolved. Check its state.';
const TAKEN = 'Another submission is linked to this job. Find out which submission it belongs to.';

/** Reads compliance jobs, and resolves those that await a decision. */
@Injectable()
export class ComplianceJobs {
  constructor(
    private readonly prisma: PrismaService,
    private readonly jobs: JobsRepository,
    private readonly seal: ComplianceSeal,
    private readonly audit: Audit,
  ) {}

  /** A job by its id here or on the platform. @throws {Problem} 404 `unknown-job` */
  async show(id: string, { seconds, signal }: Wait): Promise<ComplianceJobResponse> {
    const isSettled = ({ dueAt, giveUpAt }: JobRow) => dueAt === null && giveUpAt === null;
    return this.view(await pollUntil(seconds, () => this.find(id), isSettled, signal));
  }

  /** One page of jobs without their results, newest first. */
  async list(query: ComplianceJobsQuery): Promise<Page<ListedJobResponse>> {
    const page = await this.jobs.list(query);
    return { ...page, items: page.items.map((row) => this.listed(row)) };
  }

  /**
   * Links or abandons a job that awaits a decision.
   *
   * @throws {Problem} 404 `unknown-job`, 409 `wrong-state` or `job-taken`
   */
  async resolve(idOrAlias: string, { action, jobId }: ResolveJobRequest): Promise<ComplianceJobResponse> {
    const { id } = await this.find(idOrAlias);
    const resolved = await this.prisma.transaction(async (tx) => {
      const row = (await this.jobs.lock(tx, id)) as LockedJob;
      if (!isResolvable(row)) throw new Problem('wrong-state', ONLY_OPEN, { extensions: { state: row.state } });
      await this.audit.store(tx);
      if (action === 'abandon' || jobId === undefined) {
        const end = { ...outdated(row), ...NO_FAULT, ...ENDED, review: null };
        const changes = { ...end, state: 'Abandoned', updatedAt: row.now };
        return this.jobs.save(tx, row, { changes });
      }
      const linked = await this.jobs.settle(tx, row, jobId);
      if (!linked) throw new Problem('job-taken', TAKEN, { pointer: '/jobId' });
      return linked;
    });
    return this.view(resolved);
  }

  view(row: JobRow): ComplianceJobResponse {
    const { unreadable = [], ...job } = this.listed(row);
    const result = openIfReadable(() => this.seal.result.open(row.id, row.result));
    const platformMessage = openIfReadable(() => this.seal.message.open(row.id, row.message)) || null;
    const empty = [...unreadable, ...(result === undefined ? ['result'] : [])];
    const choices = isResolvable(row) ? [...CHOICES] : [];
    return { ...job, result: result ?? null, platformMessage, choices, ...(empty.length > 0 && { unreadable: empty }) };
  }

  private async find(id: string): Promise<JobRow> {
    const row = await this.jobs.find(id);
    if (!row) throw new Problem('unknown-job', 'No compliance job has this id. GET /v1/compliance/jobs lists them.');
    this.audit.about('compliance-job', row.id);
    return row;
  }

  private listed(row: JobRow): ListedJobResponse {
    const { id, jobId, createdAt, updatedAt, removedAt } = row;
    this.audit.about('compliance-job', id);
    const files = openIfReadable(() => this.seal.files.open(id, row.files) ?? []);
    const code = errorCode(row, this.jobs.readable);
    const error = code === null ? null : { code, message: COMPLIANCE_CODES[code] ?? LOOKUP_FAILED };
    const state = row.state as CodeOf<'complianceState'>;
    const shown = { id, jobId, state, error, files: files ?? [], createdAt, updatedAt, removedAt };
    return { ...shown, ...(files === undefined && { unreadable: ['files'] }) };
  }
}
