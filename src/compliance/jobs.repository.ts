import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Env } from '../config/env.js';
import { LOCKS } from '../database/advisory-locks.js';
import { allColumns } from '../database/columns.js';
import { PrismaService, type Tx, toBytes } from '../database/prisma.service.js';
import { Feed } from '../feed/feed.js';
import { SubjectIds } from '../feed/subject-ids.js';
import { decodeCursor, type Page, pageOf } from '../http/request/page.js';
import { UUID } from '../http/request/uuid-param.js';
import { Contract } from '../platform/contract/contract.js';
import type { Gate } from '../platform/pauses/pause-rule.js';
import { type DueRow, QUEUE_LENGTH } from '../queue/work/feeder.js';
import type { WorkQueue } from '../queue/work/work-queue.js';
import { WorkQueues } from '../queue/work/work-queues.js';
import { openIfReadable } from '../vault/unreadable-value.js';
import type { ComplianceJobsQuery } from './compliance.dto.js';
import { ComplianceSeal, type JobRow, type LockedJob } from './job-row.js';
import { type Change, ENDED, linked, outdated, type Readable } from './job-rules.js';

const LOCKED = `SELECT ${allColumns('ComplianceJob', 't')}, clock_timestamp() AS now FROM compliance_jobs t`;

/** A row that an event made of the job of a submission, which shows it from then on. */
const ALIAS = { state: 'Merged', jobId: null, result: null, review: null, ...ENDED };

/** The rows of jobs: reads, locks, and the one way in which a change is saved. */
@Injectable()
export class JobsRepository {
  private readonly queue: WorkQueue;
  /** What lookups show by the contract file. */
  readonly readable: Readable;

  constructor(
    private readonly prisma: PrismaService,
    private readonly seal: ComplianceSeal,
    private readonly env: Env,
    private readonly feed: Feed,
    contract: Contract,
    queues: WorkQueues,
    subjects: SubjectIds,
  ) {
    this.queue = queues.of('compliance');
    const { states, response } = contract.operations.getComplianceJob;
    const results = contract.canCall('getComplianceJob');
    this.readable = { results, ends: results && states !== undefined && response.state !== undefined };
    subjects.register('compliance/jobs', (id) => this.idsOf(id));
  }

  /** Finds a job by one of its ids here, or the platform's. */
  async find(id: string): Promise<JobRow | null> {
    const { complianceJob } = this.prisma;
    const own = UUID.test(id) ? await complianceJob.findUnique({ where: { id } }) : null;
    const found = own ?? (await complianceJob.findUnique({ where: { jobId: id } }));
    const shown = found?.aliasOf ? await complianceJob.findUnique({ where: { id: found.aliasOf } }) : found;
    return shown;
  }

  /** One page, newest first. */
  async list({ state, review, limit, cursor }: ComplianceJobsQuery): Promise<Page<JobRow>> {
    const [at, lastId] = decodeCursor<[createdAt: string, id: string]>(cursor, 'time', 'uuid') ?? [];
    const rows = await this.prisma.complianceJob.findMany({
      where: {
        ...{ aliasOf: null, ...(state && { state }), ...(review && { review }) },
        ...(at && lastId && { createdAt: { lte: at }, OR: [{ createdAt: { lt: at } }, { id: { lt: lastId } }] }),
      },
      orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
      take: limit + 1,
    });
    return pageOf(rows, limit, ({ createdAt, id }) => [createdAt.toISOString(), id]);
  }

  /** The jobs that may be looked up now, the longest due first, and those that are to be given up. */
  due(gate: Gate): Promise<DueRow[]> {
    const lookups = gate === 'closed' || !this.readable.results ? 0 : gate === 'probe' ? 1 : QUEUE_LENGTH;
    return this.prisma.$queryRaw`
      (SELECT id FROM compliance_jobs WHERE due_at <= now() ORDER BY due_at LIMIT ${lookups})
      UNION (SELECT id FROM compliance_jobs WHERE give_up_at <= now() ORDER BY give_up_at LIMIT ${QUEUE_LENGTH})`;
  }

  async lock(tx: Tx, id: string): Promise<LockedJob | undefined> {
    return (await tx.$queryRawUnsafe<LockedJob[]>(`${LOCKED} WHERE id = $1::uuid FOR UPDATE`, id))[0];
  }

  /** @param id of a row that is not removed, because it was submitted, or is locked already */
  async lockExisting(tx: Tx, id: string): Promise<LockedJob> {
    return (await this.lock(tx, id)) as LockedJob;
  }

  /** Locks a platform's job, known or not, so that it gets no second row, and its row, if it has one. */
  async lockByJobId(tx: Tx, jobId: string): Promise<LockedJob | undefined> {
    await tx.$executeRaw`SELECT pg_advisory_xact_lock(${LOCKS.complianceJob}::int, hashtext(${jobId}))`;
    return (await tx.$queryRawUnsafe<LockedJob[]>(`${LOCKED} WHERE job_id = $1 FOR UPDATE`, jobId))[0];
  }

  /**
   * The locked row of a submission, made now or by an earlier run, which may remove it meanwhile. Its first `call_no` is random:
   * a stalled run of a row that was removed must not take the one that was made again for its own.
   */
  async createOrLock(tx: Tx, id: string): Promise<LockedJob> {
    await tx.$executeRaw`INSERT INTO compliance_jobs (id, state, call_no) VALUES (${id}::uuid, 'Uploading', floor(random() * 1e9)) ON CONFLICT (id) DO UPDATE SET id = excluded.id`;
    return this.lockExisting(tx, id);
  }

  /** Makes the row of a job of the platform that no submission made, while `lockByJobId` is held. */
  async create(tx: Tx, jobId: string): Promise<LockedJob> {
    const { id } = await tx.complianceJob.create({ data: { id: randomUUID(), jobId, state: 'Submitted' } });
    return this.lockExisting(tx, id);
  }

  /** True while the answer to a submission may show that an event of an unknown job belongs to it. */
  async isSubmitting(tx: Tx, receivedAt: Date): Promise<boolean> {
    const where = { state: 'Submitting', attemptedAt: { lte: receivedAt } };
    return (await tx.complianceJob.findFirst({ where, select: { id: true } })) !== null;
  }

  /** Saves a change of a locked row, publishes its event, and adds the job of a lookup that is due. */
  async save(tx: Tx, row: LockedJob, { changes, publish }: Change): Promise<LockedJob> {
    const saved = { ...row, ...changes };
    await tx.complianceJob.update({ where: { id: row.id }, data: changes, select: { id: true } });
    if (publish) {
      const { type, hasResult, ...more } = publish;
      const subject = `compliance/jobs/${row.id}`;
      const data = { jobId: saved.jobId, ...more, result: hasResult ? subject : null };
      await this.feed.append(tx, { type, subject, data });
    }
    if (changes.dueAt && changes.dueAt <= row.now) this.prisma.afterCommit(tx, () => void this.queue.add(row.id));
    return saved;
  }

  /**
   * Gives a submission the platform's id of its job. If an event made a row of that job first, that becomes an alias.
   *
   * @returns undefined if the job belongs to another submission
   */
  async settle(tx: Tx, row: LockedJob, jobId: string): Promise<LockedJob | undefined> {
    const first = await this.lockByJobId(tx, jobId);
    const isOwn = first === undefined || first.id === row.id;
    if (!isOwn && first.attemptedAt !== null) return undefined;
    const opened = first && openIfReadable(() => this.seal.result.open(first.id, first.result));
    const result = opened ? toBytes(this.seal.result.seal(row.id, opened)) : null;
    const refreshMs = this.env.COMPLIANCE_REFRESH_AFTER_SECONDS * 1_000;
    const known = linked(row, first && { ...first, result }, this.readable, row.now, refreshMs);
    const changes = { ...known, jobId, result };
    if (isOwn) return this.save(tx, row, { changes });
    await this.save(tx, first, { changes: { ...ALIAS, ...outdated(first), aliasOf: row.id } });
    await tx.complianceJob.updateMany({ where: { aliasOf: first.id }, data: { aliasOf: row.id } });
    const publish = { type: 'compliance.merged', state: known.state, id: first.id, into: row.id } as const;
    return this.save(tx, row, { changes, publish });
  }

  /** The ids that a job has had here. */
  private async idsOf(id: string): Promise<string[]> {
    const into = UUID.test(id) ? (await this.find(id))?.id : undefined;
    if (into === undefined) return [];
    const aliases = await this.prisma.complianceJob.findMany({ where: { aliasOf: into }, select: { id: true } });
    return [into, ...aliases.map((alias) => alias.id)];
  }
}
