import type { Methods } from '../methods.js';
import { NotebridgeError } from '../notebridge-error.js';
import { checkMember } from '../sending/answer.js';
import { pause } from '../sending/pause.js';
import { REST_OF, type Waited } from './rest-of-work.js';

export interface WaitOptions<Kind extends keyof Waited> {
  signal?: AbortSignal | undefined;
  /** Replaces the good end, so that the wait ends earlier or later. A bad end ends it, too, even after the good one. */
  until?: ((resource: Waited[Kind]) => boolean) | undefined;
}

const WAIT_SECONDS = 50;
const HEADERS = { prefer: `wait=${WAIT_SECONDS}` };

/** The least time between two reads, for an `until` that waits for longer than the service does. */
const MIN_WAIT_MS = 1_000;

/** Reads a resource; from the second time on, after it may have changed. */
type Reader<T> = (id: string, signal: AbortSignal | undefined) => Promise<T>;

/**
 * The readers of one wait. A session has no `Prefer: wait`, so its reader waits for the next event of the session, which
 * needs the scope `events:read`.
 */
function readersOf({ GET }: Methods): { [Kind in keyof Waited]: Reader<Waited[Kind]> } {
  let cursor: string | undefined;
  return {
    provider: async (externalId, signal) => {
      const options = { params: { path: { externalId } }, headers: HEADERS, signal };
      return (await GET('/v1/providers/{externalId}', options)).data;
    },
    client: async (externalId, signal) => {
      const options = { params: { path: { externalId } }, headers: HEADERS, signal };
      return (await GET('/v1/clients/{externalId}', options)).data;
    },
    import: async (id, signal) =>
      (await GET('/v1/imports/{id}', { params: { path: { id } }, headers: HEADERS, signal })).data,
    'compliance-job': async (id, signal) =>
      (await GET('/v1/compliance/jobs/{id}', { params: { path: { id } }, headers: HEADERS, signal })).data,
    session: async (id, signal) => {
      // Before the session is read, so that no event between is missed.
      const query = { after: cursor ?? 'latest', subject: `sessions/${id}` };
      const headers = cursor === undefined ? {} : HEADERS;
      cursor = (await GET('/v1/events', { params: { query }, headers, signal })).data.cursor;
      return (await GET('/v1/sessions/{id}', { params: { path: { id } }, signal })).data;
    },
  };
}

/**
 * Waits until work is settled: a person is synced or deleted, a session has notes or will get none, an import has ended
 * or waits for a decision (`planned`, `needs-mapping`, `paused`), a compliance job has its result (`removedAt` says that
 * retention has removed it since). It has no time limit: pass a `signal`.
 *
 * @param id the external id of a person, otherwise our id
 * @throws {NotebridgeError} `bad-end` if it failed or needs a decision of an operator; `more` has its `state`, the `code`
 *   of its error, and the `resource`
 * @throws {TypeError} for an unknown kind
 * @throws the reason of `signal` once it is aborted
 */
export async function waitFor<Kind extends keyof Waited>(
  methods: Methods,
  kind: Kind,
  id: string,
  { signal, until }: WaitOptions<Kind>,
): Promise<Waited[Kind]> {
  if (!Object.hasOwn(REST_OF, kind))
    throw new TypeError(`waitFor knows no kind ${kind}. Use one of ${Object.keys(REST_OF).join(', ')}.`);
  const read = readersOf(methods)[kind];
  for (;;) {
    const begun = performance.now();
    const resource = await read(id, signal);
    checkMember(resource, kind === 'provider' || kind === 'client' ? 'sync' : 'state', Boolean);
    const { isGood, bad } = REST_OF[kind](resource);
    if (until ? until(resource) : isGood) return resource;
    if (bad) {
      const { message, ...why } = bad;
      throw new NotebridgeError('bad-end', 0, message, { more: { ...why, resource } });
    }
    await pause(MIN_WAIT_MS - (performance.now() - begun), signal);
  }
}
