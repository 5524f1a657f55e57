import fc from 'fast-check';
import type { CallTempo } from '../../platform/rate-limit/throughput.js';
import { callsOf, replay, type Sample, type Somebody } from '../report/import-run.spec-support.js';
import { COUNT_EVERY_MS, etaSeconds, type RemainingWork } from './import-eta.js';

const SEED = Number(process.env.SEED);

/** The platform's limit. */
const limit = { calls: 300, windowMs: 60_000 };

/** An import to be replayed. */
interface Mix {
  seed: number;
  providers: number;
  clients: number;
  /** Shares: of people who are there already by kind, of clients with an email, of those with several providers. */
  linkedProviders: number;
  linkedClients: number;
  emails: number;
  severalProviders: number;
  latencyMs: number;
}

type Fractions = () => number;

/** Even fractions from a start (a linear congruential generator, Numerical Recipes §7.1). */
function fractions(seed: number): Fractions {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const share = fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true }));
const mix = fc.record({
  seed: fc.nat(),
  providers: fc.integer({ min: 1, max: 200 }),
  clients: fc.integer({ min: 0, max: 600 }),
  linkedProviders: share,
  linkedClients: share,
  emails: share,
  severalProviders: share,
  latencyMs: fc.integer({ min: 20, max: 2_000 }),
});

/** Whether the next one of so many is among this share of them. */
type Spread = (share: number, of: number) => () => boolean;

function evenly(share: number): () => boolean {
  let due = 0.5;
  return () => {
    due += share;
    if (due < 1) return false;
    due -= 1;
    return true;
  };
}

/** As in a file that is sorted by when somebody came: all of them first, or last. */
function first(share: number, of: number): () => boolean {
  let at = 0;
  return () => at++ < Math.round(share * of);
}

function last(share: number, of: number): () => boolean {
  const isOther = first(1 - share, of);
  return () => !isOther();
}

function peopleOf(mix: Mix, fraction: Fractions, spread: Spread): Somebody[] {
  const isThere = spread(mix.linkedProviders, mix.providers);
  const isClientThere = spread(mix.linkedClients, mix.clients);
  const nobody = { kind: 'provider' as const, hasEmail: true, providers: [] };
  const providers = Array.from({ length: mix.providers }, () => ({ ...nobody, isThere: isThere() }));
  const clients = Array.from({ length: mix.clients }, (): Somebody => {
    const hasEmail = fraction() < mix.emails;
    const first = Math.floor(fraction() * mix.providers);
    const several = mix.providers > 1 && fraction() < mix.severalProviders;
    const listed = several ? [first, (first + 1) % mix.providers] : [first];
    const wasThere = isClientThere();
    return { kind: 'client', hasEmail, providers: listed, isThere: hasEmail && wasThere };
  });
  return [...providers, ...clients];
}

/** The estimates of one run from one tenth of it on that are further from the truth than they may be. */
function misses(mix: Mix, spread: (fraction: Fractions) => Spread, fewestCalls: number): Sample[] {
  const fraction = fractions(mix.seed);
  const people = peopleOf(mix, fraction, spread(fraction));
  fc.pre(people.reduce((calls, person) => calls + callsOf(person), 0) >= fewestCalls);
  const samples = replay({
    people,
    limit,
    latencyMs: () => mix.latencyMs * (0.5 + fraction()),
    lateMs: () => 25 * fraction(),
  });
  // When the last answer comes, and when it is counted, is luck.
  const luck = (COUNT_EVERY_MS + mix.latencyMs) / 1_000;
  return samples.filter(
    ({ done, etaSeconds, trueSeconds }) => done >= 0.1 && Math.abs(etaSeconds - trueSeconds) > 0.1 * trueSeconds + luck,
  );
}

describe(`the time that an import still takes (SEED=${SEED})`, () => {
  it('is known within a tenth from a tenth of the run on, however the file is sorted', () => {
    // Nothing tells beforehand which clients are there: either they are reached early, or it makes no difference.
    const early = mix.map((some) => ({ ...some, providers: 1 + (some.providers % 8), clients: 150 + some.clients }));
    const mostlyProviders = mix.map((some) => ({
      ...some,
      providers: 200 + some.providers,
      clients: some.clients % 20,
    }));
    const allNew = mix.map((some) => ({ ...some, linkedProviders: 0, linkedClients: 0 }));
    const alike = mix.map((some) => ({ ...some, severalProviders: 0 }));
    fc.assert(
      fc.property(
        fc.oneof(early, mostlyProviders, allNew, alike),
        fc.constantFrom(evenly, first, last),
        (some, sorted) => {
          expect(misses(some, () => sorted, 300)).toEqual([]);
        },
      ),
      { seed: SEED, numRuns: 20 },
    );
  });

  it('is known as well of people in any order, when there are enough to tell from a tenth of them', () => {
    const byLot = (fraction: Fractions) => (share: number) => () => fraction() < share;
    const large = mix.map((some) => ({ ...some, providers: 5 + (some.providers % 30), clients: 1_500 }));
    fc.assert(
      fc.property(large, (some) => expect(misses(some, byLot, 2_500)).toEqual([])),
      { seed: SEED, numRuns: 3 },
    );
  });

  it.each([
    ['first', first],
    ['last', last],
  ])('is known as well when everybody stands %s in the file who is there already', (_, sorted) => {
    const half = { seed: 1, linkedProviders: 0.5, linkedClients: 0.5, emails: 1, severalProviders: 1, latencyMs: 100 };
    expect(misses({ ...half, providers: 300, clients: 0 }, () => sorted, 300)).toEqual([]);
    expect(misses({ ...half, providers: 10, clients: 300 }, () => sorted, 300)).toEqual([]);
  });

  const idle: CallTempo = {
    limit,
    latencyMs: 100,
    achievedMs: null,
    sinceGrantMs: null,
    freeInMs: [],
    paceInMs: 0,
    blockedMs: 0,
  };
  const nobody = { unchecked: 0, linked: 0, absent: 0 };
  const work: RemainingWork = {
    people: 100,
    callsMin: 100,
    longest: 1,
    underWay: 0,
    providers: nobody,
    clients: nobody,
    waitMs: 0,
  };

  it('counts the rest of a pause after a 429, of which the pace makes good a second', () => {
    expect(etaSeconds(work, { ...idle, blockedMs: 30_000 }) - etaSeconds(work, idle)).toBeCloseTo(29, 0);
  });

  it('is not over before the last of those who have to wait', () => {
    expect(etaSeconds({ ...work, waitMs: 60_000 }, idle)).toBeGreaterThanOrEqual(60);
  });

  it('takes a client for new whose provider was not there, and for either when it was', () => {
    const clients = { unchecked: 100, linked: 0, absent: 0 };
    const [linked, absent] = [
      { unchecked: 0, linked: 50, absent: 0 },
      { unchecked: 0, linked: 0, absent: 50 },
    ];
    const seconds = (providers: typeof linked) => etaSeconds({ ...work, providers, clients }, idle);
    expect([seconds(absent), seconds(linked)].map((eta) => Math.round(eta / 10))).toEqual([4, 3]);
  });
});
