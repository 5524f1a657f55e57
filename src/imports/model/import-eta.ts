import { type CallTempo, grantedInMs } from '../../platform/rate-limit/throughput.js';

/** People of one kind whom only their check can tell to be on the platform already. */
export interface CheckedPeople {
  /** Calls that those not checked yet take beyond the fewest, should each of them have to be created. */
  unchecked: number;
  /** How many were found there. */
  linked: number;
  /** How many were not. */
  absent: number;
}

/** What is left of a running import. */
export interface RemainingWork {
  /** People who still take a call. */
  people: number;
  /** The fewest calls that they take, those under way among them. */
  callsMin: number;
  /** The fewest calls that the one of them takes who takes the most; each waits for the answer to the one before. */
  longest: number;
  /** How many calls are under way. */
  underWay: number;
  providers: CheckedPeople;
  clients: CheckedPeople;
  /** Milliseconds until the last of those may go on who have to wait, after a fault, say. */
  waitMs: number;
}

/** Milliseconds between two counts of the outcomes: an import ends with the count that finds nobody left. */
export const COUNT_EVERY_MS = 700;

/** An assumption counts as much as so many people who were checked. */
const ASSUMED = 1;

/** The share of clients that is assumed to be there among those whose providers were: nobody knows. */
const EVEN_ODDS = 0.5;

/**
 * The seconds that an import still takes: calls left × pace, the stalls of a full window, the last answers, and the
 * count that finds the end. It knows of no other load.
 *
 * How many of the people not checked yet are on the platform already is taken from those who were, by kind: a fair
 * sample, since people go in an order that is independent of the file's (`fair-order.ts`). Before there are any,
 * providers are assumed to be new; clients follow their providers, for a client can be there only where its provider was.
 */
export function etaSeconds(work: RemainingWork, tempo: CallTempo): number {
  const pastCountMs = COUNT_EVERY_MS / 2;
  if (work.people === 0) return toSeconds(pastCountMs);
  const calls = expectedCalls(work);
  const toGrant = Math.max(0, calls - work.underWay);
  const grantedMs = toGrant > 0 ? grantedInMs(toGrant, tempo) : 0;
  const answersMs = toGrant > 0 ? lastAnswersMs(calls / work.people, tempo) : lastAnswerMs(tempo);
  const longestMs = toGrant > 0 ? work.longest * tempo.latencyMs : 0;
  return toSeconds(Math.max(grantedMs + answersMs, longestMs, work.waitMs) + pastCountMs);
}

/**
 * Milliseconds from the last grant to the last answer, and by which the last grants lag: of people who take n calls in a
 * row each, the last to begin waits for n answers. The others' calls lie between, so that about half of them show.
 */
function lastAnswersMs(callsEach: number, { latencyMs }: CallTempo): number {
  return (latencyMs * (callsEach + 1)) / 2;
}

/** Milliseconds until the last answer, once no call is left to be granted. */
function lastAnswerMs({ latencyMs, sinceGrantMs }: CallTempo): number {
  return Math.max(0, latencyMs - (sinceGrantMs ?? 0));
}

/** Calls still to be made, as far as those seen so far tell. */
function expectedCalls({ callsMin, providers, clients }: RemainingWork): number {
  const linkedProviders = linkedShare(providers, 0);
  const linkedClients = linkedShare(clients, linkedProviders * EVEN_ODDS);
  return callsMin + providers.unchecked * (1 - linkedProviders) + clients.unchecked * (1 - linkedClients);
}

function linkedShare({ linked, absent }: CheckedPeople, assumed: number): number {
  return (linked + assumed * ASSUMED) / (linked + absent + ASSUMED);
}

/** To tenths: of a short import, whole seconds would be much. */
function toSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
