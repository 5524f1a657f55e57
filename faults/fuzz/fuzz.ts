import { setTimeout as delay } from 'node:timers/promises';
import { HANG_MS } from '../../harness/until.js';
import { brokenLaws, isBusy } from './judge.js';
import type { Operation } from './openapi.js';
import type { FuzzRequest, RequestMaker } from './request-maker.js';
import type { FuzzAnswer, Sender } from './send.js';

/** Requests under way at once. */
export const UNDER_WAY = 16;

/** After so many requests one asks whether the process is alive. */
const PROBE_EVERY = 100;

/** Milliseconds after which a request that the database had no time for is sent again. */
const AGAIN_MS = 500;

const PROBE = { method: 'GET', url: '/health/live', headers: {}, body: undefined };

/** What a run came to. */
interface Tally {
  /** Answers by their status. */
  readonly statuses: Record<string, number>;
  /** Answers that the machine was too busy for; the request was sent again. */
  busy: number;
  /** Operations that did what they were asked for at least once. */
  readonly successes: Set<string>;
  /** One line for each broken law: the request's number and what was odd in it; nothing that it held. */
  readonly broken: string[];
  /** The most answers that came between a probe and its own. */
  mostOvertaken: number;
}

/** The name of an operation in a tally. */
export const nameOf = ({ method, path }: Operation): string => `${method} ${path}`;

/**
 * Sends the requests of the numbers below `count`, several at a time, and judges every answer.
 *
 * @param more requests for each operation without a success, because all its requests may have been spoilt
 */
export async function fuzz(
  maker: RequestMaker,
  sender: Sender,
  { count, more }: { count: number; more: number },
  slugs: ReadonlySet<string>,
): Promise<Tally> {
  const tally: Tally = { statuses: {}, busy: 0, successes: new Set(), broken: [], mostOvertaken: 0 };
  let next = 0;
  let answered = 0;
  const probe = async () => {
    const before = answered;
    const { status } = await sender.send(PROBE);
    if (status !== 200) tally.broken.push(`health was answered ${status}`);
    tally.mostOvertaken = Math.max(tally.mostOvertaken, answered - before);
  };
  let patienceMs = HANG_MS;
  const sendUntilServed = async (request: FuzzRequest): Promise<FuzzAnswer> => {
    const begun = performance.now();
    for (;;) {
      const answer = await sender.send(request);
      if (!isBusy(answer)) return answer;
      if (performance.now() - begun > patienceMs) {
        patienceMs = 0;
        return answer;
      }
      tally.busy += 1;
      await delay(AGAIN_MS);
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
      const laws = brokenLaws(request, answer, slugs);
      for (const law of laws) tally.broken.push(lineOf(request, answer.status, law));
      if (laws.length > 0 || !(Number(answer.status) < 300)) continue;
      tally.successes.add(nameOf(request.operation));
      if (answer.type.startsWith('application/json') && answer.text !== '') {
        maker.known.learn(request.operation.path, JSON.parse(answer.text));
      }
    }
  };
  await Promise.all(Array.from({ length: UNDER_WAY }, work));
  return tally;
}

const lineOf = ({ number, operation, method, key, oddities }: FuzzRequest, status: number | string, law: string) =>
  `request ${number}, ${method} ${operation.path} with key ${key}, odd: ${oddities.join(', ') || 'nothing'}, answered ${status}: ${law}`;
