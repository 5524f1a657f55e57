/** Jobs on one page of a list, and pages of it. */
const MOST_JOBS = 50;
const MOST_PAGES = 1_000;

/** BullMQ numbers its jobs; by another id it would read another of the queue's keys. */
const JOB_ID = /^\d{1,18}$/;

/** Names of queues and of states. */
const WORD = /^[a-z-]{1,40}$/;

/**
 * Matches a path with a pattern of bull-board's, such as `/api/queues/:queueName/:jobId`.
 *
 * @param path below `/api/`, decoded
 * @returns the pattern's parameters, or undefined where it does not fit
 */
export function parametersOf(pattern: string, path: string): Record<string, string> | undefined {
  const [parts, segments] = [pattern.replace(/^\/api\//, '').split('/'), path.split('/')];
  if (parts.length !== segments.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [at, part] of parts.entries()) {
    const segment = segments[at] ?? '';
    if (!part.startsWith(':')) {
      if (part !== segment) return undefined;
    } else if (!(part === ':jobId' ? JOB_ID : WORD).test(segment)) return undefined;
    else parameters[part.slice(1)] = segment;
  }
  return parameters;
}

/** What a list of jobs may be asked for, within bounds: one that holds a whole queue would take the process' memory. */
export function boundedQuery(query: Record<string, unknown>): Record<string, string> {
  const bounded: Record<string, string> = {};
  for (const name of ['activeQueue', 'status']) {
    const value = query[name];
    if (typeof value === 'string' && WORD.test(value)) bounded[name] = value;
  }
  for (const [name, most] of Object.entries({ page: MOST_PAGES, jobsPerPage: MOST_JOBS })) {
    const value = Math.trunc(Number(query[name]));
    if (value >= 1) bounded[name] = String(Math.min(value, most));
  }
  return bounded;
}
