import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from '../../harness/service.js';
import type { ComplianceJob } from '../../simulator/compliance/compliance-job.js';
import { readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { ListedJobResponse } from '../../src/compliance/compliance.dto.js';
import { everyItem } from '../ehr.js';
import type { World } from '../world.js';
import { checkJobs, type KnownJobs } from './compliance-checks.js';
import type { FeedWatch } from './feed-watch.js';

/** Submissions in flight at the same time. */
const CONCURRENCY = 3;
/** Maximum pause of one caller between two submissions. */
const PAUSE_MS = 500;
const JOBS = '/v1/compliance/jobs';
const PDF = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';
/** The status of a submission whose outcome is unknown: a retry would not change it. */
const UNCLEAR = 504;

/** In addition to lost answers: some uploads last, some events come before the answer, and some calls have no effect. */
const FAULTS = [
  { operation: 'complianceUploadUrl', kind: 'slow', probability: 0.3, ms: 1_500 },
  { operation: 'complianceUploadUrl', kind: 'commit-then-500', probability: 0.1 },
  { operation: 'submitComplianceJob', kind: 'slow', probability: 0.2, ms: 3_000 },
  { operation: 'submitComplianceJob', kind: 'refuse', probability: 0.1 },
];

/** The answer to a submission: a job, or a problem, some of which name the job. */
interface JobAnswer {
  readonly id?: string;
  readonly jobId?: string;
  readonly state?: string;
  readonly type?: string;
}

/** PDFs that the EHR submits, each form with an Idempotency-Key, until it is stopped; its operator resolves unknown ones. */
export class ComplianceWork {
  private readonly known: KnownJobs = {
    ids: new Map(),
    jobIds: new Map(),
    unknown: new Set(),
    late: new Set(),
    wrong: [],
  };
  private sent = 0;
  private isStopped = false;
  private submitting: Promise<unknown> = Promise.resolve();

  /** @param least minimum of submissions */
  constructor(
    private readonly world: World,
    private readonly least: number,
  ) {}

  /** Starts to submit. */
  begin(): void {
    this.world.simulator.state.faults.order(FAULTS.map(readFaultRule));
    this.submitting = Promise.all(Array.from({ length: CONCURRENCY }, () => this.run()));
  }

  /** Waits until this share of the least number of submissions was begun. */
  async reaches(share: number): Promise<void> {
    await this.world.reach(`${share} of the submissions were begun`, () => this.sent >= share * this.least);
  }

  /** Stops submitting, waits until no submission is open, repeats each, and resolves some. No fault may be left. */
  async stop(): Promise<void> {
    const { world } = this;
    this.isStopped = true;
    await this.submitting;
    await world.processes.up();
    // Their callers gave up and their processes were killed, so nothing ends them before their 15 minutes.
    await world.rows("UPDATE compliance_jobs SET give_up_at = now() WHERE state = 'Uploading'");
    await world.reach('no submission is open', async () => {
      const open = await world.rows<{ id: string; isLate: boolean }>(
        `SELECT id, give_up_at < now() - interval '20 seconds' AS "isLate" FROM compliance_jobs
         WHERE state IN ('Uploading', 'Submitting')`,
      );
      for (const { id, isLate } of open) if (isLate) this.known.late.add(id);
      return open.length === 0;
    });
    for (let at = 0; at < this.sent; at += 1) await this.submit(at);
    await this.resolve(() => world.random.chance(0.5));
  }

  /** Resolves the rest, waits until nothing is due, and checks the invariants. All events must have been heard. */
  async ended(feed: FeedWatch): Promise<void> {
    const { world, known } = this;
    await this.resolve(() => true);
    await world.reach('no compliance job is due', async () => {
      return (await world.count('compliance_jobs WHERE due_at IS NOT NULL OR give_up_at IS NOT NULL')) === 0;
    });
    await feed.readToEnd();
    await checkJobs(world, known);
    world.oracle.same('some submissions were unknown', known.unknown.size > 0, true);
    const counts = `${known.jobIds.size} answered or linked, ${known.unknown.size} were unknown`;
    world.setting.log(`${this.sent} submissions of PDFs: ${counts}`);
  }

  private async run(): Promise<void> {
    const { random } = this.world;
    while (!this.isStopped) {
      const at = this.sent;
      this.sent += 1;
      // Some callers give up after their first attempt, and some do not believe that the outcome is unknown.
      const answer = await this.submit(at, random.chance(0.2) ? 1 : undefined);
      if (answer?.status === UNCLEAR) await this.submit(at);
      await delay(PAUSE_MS * random.fraction());
    }
  }

  /** Submits one or two files, and notes the answer. @returns undefined if the caller gave up */
  private async submit(at: number, tries?: number): Promise<Answer<JobAnswer> | undefined> {
    const key = `job-${at}`;
    const form = new FormData();
    for (const name of at % 2 ? [key] : [key, `${key}-annex`])
      form.append(name, new Blob([PDF], { type: 'application/pdf' }), 'visit.pdf');
    const options = { body: form, idempotencyKey: key };
    const answer = await this.world.ehr.call<JobAnswer>('POST', JOBS, options, { tries, final: UNCLEAR });
    if (!answer?.body.type?.endsWith('not-submitted')) return answer && this.note(key, answer);
    if (this.jobOf(key)) this.known.wrong.push(`${key} was answered not-submitted, but was`);
    return this.submit(at, tries);
  }

  private note(key: string, answer: Answer<JobAnswer>): Answer<JobAnswer> {
    const { ids, jobIds, unknown, wrong } = this.known;
    const { id, jobId, state, type } = answer.body;
    const [earlier = id, earlierJob = jobId] = [ids.get(key), jobIds.get(key)];
    const isAnswer = answer.status === 201 ? id && jobId : answer.status === UNCLEAR && id;
    if (!isAnswer || id !== earlier || jobId !== earlierJob)
      wrong.push(`${key}: ${answer.status} ${type} ${id} ${jobId} after ${earlier} ${earlierJob}`);
    if (id) ids.set(key, id);
    if (jobId) jobIds.set(key, jobId);
    if (id && state === 'Unknown') unknown.add(id);
    return answer;
  }

  /** Links unknown submissions to the jobs with their files, and abandons those without one. */
  private async resolve(isWanted: () => boolean): Promise<void> {
    const { world, known } = this;
    const rows = await everyItem<ListedJobResponse>(await world.processes.api(), JOBS);
    for (const { id, files } of rows.filter(({ state }) => state === 'Unknown')) {
      known.unknown.add(id);
      if (!isWanted()) continue;
      const [key = ''] = files;
      const job = this.jobOf(key);
      const body = job ? { action: 'link', jobId: job.jobId } : { action: 'abandon' };
      const answer = await world.ehr.call<JobAnswer>('POST', `${JOBS}/${id}/resolve`, { body });
      if (answer?.status !== 200) known.wrong.push(`resolve ${key}: ${answer?.status} ${answer?.body.type}`);
      else if (job) known.jobIds.set(key, job.jobId);
    }
  }

  /** The platform's job with this file. */
  private jobOf(key: string): ComplianceJob | undefined {
    return [...this.world.simulator.state.complianceJobs.values()].find(({ files }) => files[0]?.id === key);
  }
}
