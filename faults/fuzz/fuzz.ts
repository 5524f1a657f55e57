import { setTimeout as delay } from 'node:timers/promises';
import { HANG_MS } from '../../harness/until.js';
import { isBusy, violationsOf } from './judge.js';
import type { Operation } from './openapi.js';
import type { FuzzRequest, RequestMaker } from './request-maker.js';
import type { FuzzAnswer, Sender } from './send.js';

/** Requests in flight at the same time. */
export const CONCURRENCY = 16;

/** One request in this many is a probe of /health/live. */
const PROBE_EVERY = 100;

/** Pause before the retry of a request that the database was too busy for. */
const RETRY_MS = 500;

const PROBE = { method: 'GET', url: '/health/live', headers: {}, body: undefined };

/** The result of a run. */
interface Tally {
  /** Answers by their status. */
  readonly statuses: Record<string, number>;
  /** Number of requests that were retried because the machine was too busy. */
  busy: number;
  /** Operations that succeeded at least once. */
  readonly successes: Set<string>;
  /** One line for each violation: the number of the request and its odd parts, but no values. */
  readonly broken: string[];
  /** Maximum answers to other requests between a probe and its answer. */
  maxOvertaken: number;
}

/** The name of an operation in a tally. */
export const nameOf = ({ method, path }: Operation): string => `${method} ${path}`;

/**
 * Sends the requests with numbers below `count`, several at a time, and checks every answer.
 *
 * @param more additional requests for each operation without a success, because all its requests may have been odd
 */
export async function fuzz(
  maker: RequestMaker,
  sender: Sender,
  { count, more }: { count: number; more: number },
  slugs: ReadonlySet<string>,
): Promise<Tally> {
  const tally: Tally = { statuses: {}, busy: 0, successes: new Set(), broken: [], maxOvertaken: 0 };
  let next = 0;
  let answered = 0;
  const probe = async () => {
    const before = answered;
    const { status } = await sender.send(PROBE);
    if (status !== 200) tally.broken.push(`GET /health/live returned ${status}`);
    tally.maxOvertaken = Math.max(tally.maxOvertaken, answered - before);
  };
  let hangMs = HANG_MS;
  const sendUntilServed = async (request: FuzzRequest): Promise<FuzzAnswer> => {
    const begun = performance.now();
    for (;;) {
      const answer = await sender.send(request);
      if (!isBusy(answer)) return answer;
      if (performance.now() - begun > hangMs) {
        hangMs = 0;
        return answer;
      }
      tally.busy += 1;
      await delay(RETRY_MS);
    }
  };
  const { operations } = maker;
  const nextNumber = (): number | undefined => {
    if (next < count) return next++;
    while (next < count + more * operations.length) {
      const operation = operations[next++ % operations.length] as Operation;
      if (!tally.successes.has(nameOf(operation))) return next - 1;
    }
    return undefined;
  };
  const work = async () => {
    for (let number = nextNumber(); number !== undefined; number = nextNumber()) {
      const request = maker.make(number);
      if (request.number % PROBE_EVERY === 0) await probe();
      const answer = await sendUntilServed(request);
      answered += 1;
      tally.statuses[answer.status] = (tally.statuses[answer.status] ?? 0) + 1;
      const invariants = violationsOf(request, answer, slugs);
      for (const invariant of invariants) tally.broken.push(lineOf(request, answer.status, invariant));
      if (invariants.length > 0 || !(Number(answer.status) < 300)) continue;
      tally.successes.add(nameOf(request.operation));
      if (answer.type.startsWith('application/json') && answer.text !== '') {
        maker.known.learn(request.operation.path, JSON.parse(answer.text));
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return tally;
}

const lineOf = (
  { number, operation, method, key, oddities }: FuzzRequest,
  status: number | string,
  invariant: string,
) =>
  `request ${number}, ${method} ${operation.path} with key ${key}, odd: ${oddities.join(', ') || 'nothing'}, status ${status}: ${invariant}`;
