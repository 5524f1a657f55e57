import type { ComplianceJobResponse, ListedJobResponse } from '../../src/compliance/compliance.dto.js';
import { everyItem } from '../ehr.js';
import type { World } from '../world.js';

const JOBS = '/v1/compliance/jobs';
const ENDS: Record<string, string> = { Completed: 'compliance.completed', Failed: 'compliance.failed' };

/** What the EHR and its operator know of submissions, by their keys. A key is also the id of the first file. */
export interface KnownJobs {
  /** The ids here, of the answers 201 and 504. */
  readonly ids: Map<string, string>;
  /** The platform's ids, of the answers 201 and of links. */
  readonly jobIds: Map<string, string>;
  /** The ids here of all that were Unknown. */
  readonly unknown: Set<string>;
  /** The ids here of submissions that were open 20 seconds after they count as dead. */
  readonly late: Set<string>;
  /** Answers that contradict an earlier one, or the platform. */
  readonly wrong: string[];
}

interface JobEvent {
  type: string;
  id: string;
  data: { jobId: string | null; id?: string; into?: string; code?: string };
}

/** Checks the rows and events of compliance jobs. All events must have been heard, and nothing be due. */
export async function checkJobs(world: World, known: KnownJobs): Promise<void> {
  const { oracle, simulator, ehr } = world;
  const platform = [...simulator.state.complianceJobs.values()];
  const rows = await everyItem<ListedJobResponse>(await world.processes.api(), JOBS);
  const events = await world.rows<JobEvent>(
    `SELECT type, split_part(subject, '/', 3) AS id, data FROM feed_events WHERE type LIKE 'compliance.%' ORDER BY id`,
  );
  const count = (isCounted: (event: JobEvent) => boolean) => events.filter(isCounted).length;
  const show = async (id: string) => (await ehr.call<ComplianceJobResponse>('GET', `${JOBS}/${id}`))?.body;

  oracle.none('every answer about a submission agrees with the earlier ones and the platform', known.wrong);
  oracle.none('no submission stays open for 20 seconds after it counts as dead', [...known.late]);
  const keys = platform.map(({ files }) => files[0]?.id ?? '');
  oracle.none(
    'no Idempotency-Key submits twice',
    keys.filter((key, at) => keys.indexOf(key) !== at),
  );
  for (const { jobId, status } of platform) {
    const [row, ...others] = rows.filter((each) => each.jobId === jobId);
    const state = status === 'completed' ? 'Completed' : 'Failed';
    const shown = await show(jobId);
    const result = shown?.result as { jobId: string; status: string } | null | undefined;
    oracle.same(
      'a job of the platform is shown by exactly one row, with its end and its result',
      [row?.state, others.length, shown?.id === row?.id, result?.jobId, result?.status],
      [state, 0, true, jobId, status],
    );
    const ends = events.filter(({ type, data }) => data.jobId === jobId && Object.values(ENDS).includes(type));
    oracle.same(
      'the end of a job is published once',
      ends.map(({ type }) => type),
      [ENDS[state]],
    );
  }
  for (const [key, id] of known.ids) {
    const row = rows.find((each) => each.id === id);
    const jobId = known.jobIds.get(key) ?? null;
    const job = platform.find((each) => each.jobId === jobId);
    oracle.same(
      'an answered submission is shown by its id, with its files and its own job',
      [row !== undefined, row?.jobId, row?.files[0], job?.files[0]?.id],
      [true, jobId, key, job && key],
    );
  }
  oracle.none(
    'a row has ended, and has no job if it says so',
    rows.filter(
      ({ state, jobId }) => !(state in ENDS) && (jobId !== null || !['Abandoned', 'Rejected'].includes(state)),
    ),
  );
  const aliases = await world.rows<{ id: string; into: string }>(
    'SELECT id, alias_of AS into FROM compliance_jobs WHERE alias_of IS NOT NULL',
  );
  for (const { id, into } of aliases) {
    const merges = count(({ type, ...event }) => type === 'compliance.merged' && event.data.id === id);
    const right = count(({ data, ...event }) => event.id === into && data.id === id && data.into === into);
    oracle.same('a merge is published once', [merges, right], [1, 1]);
    oracle.same('both ids of a merged submission lead to its job', (await show(id))?.id, into);
  }
  oracle.same(
    'a merge has two rows',
    count(({ type }) => type === 'compliance.merged'),
    aliases.length,
  );
  const reviews = events.filter(({ data }) => data.code === 'submission-unknown').map(({ id }) => id);
  oracle.same('each unknown submission is published for review, once', reviews.sort(), [...known.unknown].sort());
  world.setting.log(`${platform.length} compliance jobs: ${aliases.length} merged, ${rows.length} rows`);
}
