import { type CallLimit, type CallWindow, earliest, nextBulkAt } from '../../platform/rate-limit/pacing.js';
import { achievedPaceMs } from '../../platform/rate-limit/throughput.js';
import { type CheckedPeople, COUNT_EVERY_MS, etaSeconds } from '../model/import-eta.js';
import { shuffledPlace } from '../plan/shuffled-order.js';

/** Somebody to be mirrored: what is known beforehand, and what only the check tells. */
export interface Somebody {
  kind: 'provider' | 'client';
  hasEmail: boolean;
  /** Ordinals of a client's providers. */
  providers: number[];
  isThere: boolean;
}

export interface Run {
  people: Somebody[];
  limit: CallLimit;
  /** Milliseconds until one call's answer. */
  latencyMs: () => number;
  /** Milliseconds by which a worker is late for a slot. */
  lateMs: () => number;
}

/** An estimate, and what was true. */
export interface Sample {
  /** The part of the run that was over. */
  done: number;
  etaSeconds: number;
  trueSeconds: number;
}

/** Calls under way at once, as one process of the mirror has it. */
const CONCURRENCY = 24;

/** Milliseconds between two estimates: of a run of a minute, some thirty. */
const SAMPLE_MS = 2_000;

interface Part extends Somebody {
  /** Calls that were answered. */
  done: number;
  /** Where it stands among its kind. */
  place: number;
  isDue: boolean;
  underWay: boolean;
}

interface Call {
  part: Part;
  grantedAt: number;
  answeredAt: number;
}

/**
 * Replays an import as the mirror makes it, with its own rules for slots: providers go before clients, each kind in the
 * order that is independent of the file's, and a client is due once all its providers are there.
 *
 * @returns what the estimate said all along
 */
export function replay(run: Run): Sample[] {
  const replayed = new Replay(run);
  const samples: { at: number; eta: number }[] = [];
  while (replayed.open.size > 0) {
    if (replayed.now >= (samples.at(-1)?.at ?? -SAMPLE_MS) + SAMPLE_MS) {
      samples.push({ at: replayed.now, eta: replayed.estimate() });
    }
    replayed.goOn();
  }
  const endedAt = Math.ceil(replayed.now / COUNT_EVERY_MS) * COUNT_EVERY_MS;
  return samples.map(({ at, eta }) => ({
    done: at / endedAt,
    etaSeconds: eta,
    trueSeconds: (endedAt - at) / 1_000,
  }));
}

class Replay {
  /** Milliseconds since the import was applied. */
  now = 0;
  readonly open: Set<Part>;
  private readonly parts: Part[];
  /** Those who are due, in their order. */
  private readonly due: Part[];
  private readonly calls: Call[] = [];
  private underWay: Call[] = [];
  private bulkNextAt: Date | null = null;

  constructor(private readonly run: Run) {
    this.parts = run.people.map((person, at) => ({
      ...person,
      done: 0,
      place: shuffledPlace(at + 1),
      isDue: person.kind === 'provider',
      underWay: false,
    }));
    this.due = this.parts.filter(({ isDue }) => isDue).sort(byPlace);
    this.open = new Set(this.parts);
  }

  /** Grants the next call if one may be, else lets time pass until something happens. */
  goOn(): void {
    const next = this.underWay.length < CONCURRENCY ? this.due.find((part) => !part.underWay) : undefined;
    const slotAt = earliest('bulk', this.window(), this.run.limit).getTime();
    if (next && slotAt <= this.now) {
      this.grant(next);
      return;
    }
    const moments = this.underWay.map(({ answeredAt }) => answeredAt);
    if (next) moments.push(slotAt + this.run.lateMs());
    this.now = Math.min(...moments);
    const answered = this.underWay.filter(({ answeredAt }) => answeredAt <= this.now);
    this.underWay = this.underWay.filter(({ answeredAt }) => answeredAt > this.now);
    for (const { part } of answered) this.settle(part);
  }

  /** What the estimate says now. */
  estimate(): number {
    const open = [...this.open];
    const { limit } = this.run;
    const answered = this.calls.slice(-limit.calls).filter(({ answeredAt }) => answeredAt <= this.now);
    const waited = answered.reduce((sum, { grantedAt, answeredAt }) => sum + answeredAt - grantedAt, 0);
    const latencyMs = waited / (answered.length || 1);
    const lately = this.calls.slice(-limit.calls);
    const work = {
      people: open.length,
      callsMin: open.reduce((sum, part) => sum + fewest(part), 0),
      longest: Math.max(...open.map(fewest)),
      underWay: this.underWay.length,
      providers: this.checked('provider'),
      clients: this.checked('client'),
      waitMs: 0,
    };
    return etaSeconds(work, {
      limit,
      latencyMs,
      achievedMs: achievedPaceMs(lately.map(({ grantedAt }) => grantedAt)),
      sinceGrantMs: lately.length === 0 ? null : this.now - Math.max(...lately.map(({ grantedAt }) => grantedAt)),
      freeInMs: lately
        .map(
          (call) =>
            (call.answeredAt > this.now ? call.grantedAt + latencyMs : call.answeredAt) + limit.windowMs - this.now,
        )
        .filter((inMs) => inMs > 0)
        .sort((left, right) => left - right),
      paceInMs: (this.bulkNextAt?.getTime() ?? this.now) - this.now,
      blockedMs: 0,
    });
  }

  private grant(part: Part): void {
    this.bulkNextAt = nextBulkAt(this.window(), this.run.limit);
    part.underWay = true;
    const call = { part, grantedAt: this.now, answeredAt: this.now + this.run.latencyMs() };
    this.calls.push(call);
    this.underWay.push(call);
  }

  private settle(part: Part): void {
    part.underWay = false;
    part.done += 1;
    if (part.done < callsOf(part)) return;
    this.open.delete(part);
    this.due.splice(this.due.indexOf(part), 1);
    if (part.kind === 'provider') this.requeueClients();
  }

  private requeueClients(): void {
    for (const part of this.open) {
      if (part.isDue || part.providers.some((at) => this.open.has(this.parts[at] as Part))) continue;
      part.isDue = true;
      this.due.push(part);
    }
    this.due.sort(byPlace);
  }

  private window(): CallWindow {
    const { calls, windowMs } = this.run.limit;
    const ends = this.calls
      .slice(-calls)
      .map(({ answeredAt }) => (answeredAt > this.now ? Number.POSITIVE_INFINITY : answeredAt + windowMs));
    const occupied = ends.filter((until) => until > this.now);
    const first = Math.min(...occupied);
    return {
      now: new Date(this.now),
      blockedUntil: null,
      bulkNextAt: this.bulkNextAt,
      occupied: occupied.length,
      firstFreeAt: Number.isFinite(first) ? new Date(first) : null,
    };
  }

  private checked(kind: Part['kind']): CheckedPeople {
    const asked = this.parts.filter((part) => part.kind === kind && part.hasEmail);
    const seen = asked.filter((part) => part.done > 0);
    const linked = seen.filter((part) => part.isThere).length;
    const unsure = asked.filter((part) => part.done === 0 && callsOf({ ...part, isThere: false }) > fewest(part));
    return { unchecked: unsure.length, linked, absent: seen.length - linked };
  }
}

function byPlace(left: Part, right: Part): number {
  return left.kind === right.kind ? left.place - right.place : left.kind === 'provider' ? -1 : 1;
}

/** Calls that somebody takes: check, create, and the list, which a create has set to the first provider alone. */
export function callsOf({ kind, hasEmail, providers, isThere }: Somebody): number {
  if (kind === 'provider') return isThere ? 1 : 2;
  const list = isThere || providers.length > 1 ? 1 : 0;
  return (hasEmail ? 1 : 0) + (isThere ? 0 : 1) + list;
}

/** The fewest calls that are left, as far as it is known. */
function fewest(part: Part): number {
  if (part.done > 0 || !part.hasEmail) return callsOf(part) - part.done;
  return Math.min(callsOf({ ...part, isThere: true }), callsOf({ ...part, isThere: false }));
}
