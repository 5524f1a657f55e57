import { Processor } from '@nestjs/bullmq';
import type { OnModuleInit } from '@nestjs/common';
import { Env } from '../config/env.js';
import { PrismaService, toBytes } from '../database/prisma.service.js';
import { type ComplianceJob, PlatformClient } from '../platform/clients/platform-client.js';
import { PlatformError } from '../platform/contract/platform-errors.js';
import { OK } from '../platform/pauses/request-calls.js';
import { backoff } from '../queue/work/backoff.js';
import { Feeder } from '../queue/work/feeder.js';
import { Host, WORKER } from '../queue/work/host.js';
import { WorkQueues } from '../queue/work/work-queues.js';
import { WorkStore } from '../queue/work/work-store.js';
import { CallGate, type GatedCall } from '../sessions/fetch/call-gate.js';
import { ComplianceSeal, type JobRow, type LockedJob } from './job-row.js';
import { afterLookup, type Change, givenUp, NO_FAULT, nextLookup } from './job-rules.js';
import { JobsRepository } from './jobs.repository.js';

/** Maximum lookups in flight per process. */
const CONCURRENCY = 2;

const OPERATION = 'getComplianceJob';

/** A lookup that was committed. Another event or lookup makes its answer outdated. */
type Lookup = GatedCall & { no: number; jobId: string };

/** One job names a compliance job, which it looks up on the platform, or gives up. */
@Processor('compliance', WORKER)
export class ComplianceProcessor extends Host implements OnModuleInit {
  constructor(
    store: WorkStore,
    queues: WorkQueues,
    private readonly feeder: Feeder,
    private readonly prisma: PrismaService,
    private readonly jobs: JobsRepository,
    private readonly platform: PlatformClient,
    private readonly gate: CallGate,
    private readonly seal: ComplianceSeal,
    private readonly env: Env,
  ) {
    super(store, queues.of('compliance'), { concurrency: CONCURRENCY });
  }

  onModuleInit(): void {
    const due = async () => this.jobs.due((await this.gate.gates(OPERATION))[OPERATION]);
    this.feeder.feed({ queue: this.queue, due });
  }

  protected async work(id: string): Promise<boolean> {
    const lookup = await this.begin(id);
    if (!lookup) return false;
    const { signal } = this.shutdown;
    const answer = await this.platform.getComplianceJob(lookup.jobId, { signal }).catch((error: unknown) => {
      if (error instanceof PlatformError) return error;
      throw error;
    });
    if (!(answer instanceof PlatformError)) await this.answered(lookup, answer);
    else if (!signal.aborted) await this.failed(lookup, answer);
    return false;
  }

  protected postpone(id: string): Promise<void> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.jobs.lockExisting(tx, id);
      const failures = row.failures + 1;
      const dueAt = row.dueAt && backoff(failures, row.now);
      await this.jobs.save(tx, row, inTime(row, { fault: 'internal', failures, dueAt }));
    });
  }

  /** @returns the lookup that may go now; undefined if none may, and the job is given up if it is time */
  private begin(id: string): Promise<Lookup | undefined> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.jobs.lock(tx, id);
      if (!row) return undefined;
      const { jobId, now, dueAt, refusedAt, refusedStatus } = row;
      const isDue = dueAt !== null && dueAt <= now && this.jobs.readable.results;
      const probes = isDue ? await this.gate.admit(OPERATION, now, tx) : undefined;
      const no = row.callNo + 1;
      await this.jobs.save(tx, row, probes ? { changes: { callNo: no } } : inTime(row, {}));
      return probes && jobId !== null ? { id, no, jobId, at: now, probes, refusedAt, refusedStatus } : undefined;
    });
  }

  private answered(lookup: Lookup, { state, raw }: ComplianceJob): Promise<void> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.jobs.lockExisting(tx, lookup.id);
      const { id, now } = row;
      const end = afterLookup(row, state, now);
      const dueAt = nextLookup(row, now, this.env.COMPLIANCE_REFRESH_EVERY_SECONDS * 1_000);
      const change = end
        ? { ...end, changes: { ...end.changes, result: toBytes(this.seal.result.seal(id, raw)) } }
        : inTime(row, { ...NO_FAULT, dueAt });
      if (row.callNo === lookup.no) await this.jobs.save(tx, row, change);
      // Last, because every transaction locks rows of jobs before pauses.
      await this.gate.judge(tx, OPERATION, lookup, OK, now);
    });
  }

  private failed(lookup: Lookup, error: PlatformError): Promise<void> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.jobs.lockExisting(tx, lookup.id);
      const { retryAt, ...failure } = await this.gate.failed(tx, OPERATION, lookup, row, error, row.now);
      const change = inTime(row, { ...failure, dueAt: retryAt, updatedAt: row.now });
      if (row.callNo === lookup.no) await this.jobs.save(tx, row, change);
    });
  }
}

/** A change of a job without a result, which is given up if it is time. */
function inTime(row: LockedJob, changes: Partial<JobRow>): Change {
  const { now, giveUpAt } = row;
  if (giveUpAt === null || giveUpAt > now) return { changes };
  const end = givenUp(row, now);
  return { ...end, changes: { ...changes, ...end.changes } };
}
