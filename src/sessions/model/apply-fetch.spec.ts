import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { applyFetch, type FetchTicket, takeTicket, wantsFetch } from './apply-fetch.js';
import type { Freshness } from './session-row.js';

/** A fetch under way: what the row said before it left, and which version the platform answered with. */
interface Fetch {
  ticket: FetchTicket;
  answer: number | null;
}

/** How an answer is judged, and what a fetch notes before it leaves. */
interface Rules {
  ticket(row: Freshness): FetchTicket;
  apply(row: Freshness, ticket: FetchTicket): Freshness | undefined;
}

const OURS: Rules = { ticket: takeTicket, apply: applyFetch };

/** What is not enough: the answer that arrives last is taken for the newest. */
const LAST_ONE_WINS: Rules = {
  ticket: takeTicket,
  apply: (row, ticket) => ({ ...row, fetched_generation: Math.max(row.fetched_generation, ticket.generation) }),
};

/** What is not enough either: the answer covers every event that came until it was stored. */
const COVERS_WHAT_CAME_MEANWHILE: Rules = {
  ticket: takeTicket,
  apply: (row, ticket) => {
    const fresh = applyFetch(row, ticket);
    return fresh && { ...fresh, fetched_generation: row.wanted_generation };
  },
};

/** What is not enough either: a fetch during an update covers it, although the platform may not have it yet. */
const COVERS_AN_UPDATE_UNDER_WAY: Rules = {
  ticket: (row) => takeTicket({ ...row, update_until: null }),
  apply: applyFetch,
};

/**
 * The platform, the events on their way, the row and the fetches under way. Every change at the platform sends an event,
 * late and in any order; the platform answers a fetch at some moment between its start and its end. An update changes
 * the platform, too, and its event never comes.
 */
class Model {
  platform = 0;
  stored = 0;
  underWay: Fetch[] = [];
  undelivered = 0;
  update: Fetch | undefined;
  row: Freshness = { wanted_generation: 0, fetched_generation: 0, answers: 0 };
  wentBack = false;

  constructor(private readonly rules: Rules) {}

  step(move: Move): void {
    const fetch = this.underWay[move.which % Math.max(1, this.underWay.length)];
    switch (move.do) {
      case 'change':
        this.platform += 1;
        this.undelivered += 1;
        return;
      case 'deliver':
        if (this.undelivered === 0) return;
        this.undelivered -= 1;
        this.row = { ...this.row, wanted_generation: this.row.wanted_generation + 1 };
        return;
      case 'redeliver':
        this.row = { ...this.row, wanted_generation: this.row.wanted_generation + 1 };
        return;
      case 'begin':
        if (wantsFetch(this.row)) this.underWay.push({ ticket: this.rules.ticket(this.row), answer: null });
        return;
      case 'answer':
        if (fetch) fetch.answer ??= this.platform;
        return;
      case 'end':
        if (fetch) this.end(fetch);
        return;
      case 'die':
        this.underWay = this.underWay.filter((other) => other !== fetch);
        return;
      case 'update':
        if (this.update) return;
        this.update = { ticket: this.rules.ticket(this.row), answer: null };
        this.row = { ...this.row, wanted_generation: this.row.wanted_generation + 1, update_until: LATER };
        return;
      case 'update-takes-effect':
        if (!this.update || this.update.answer !== null) return;
        this.platform += 1;
        this.update.answer = this.platform;
        return;
      case 'update-is-answered':
        if (this.update?.answer == null) return;
        this.row = { ...this.row, update_until: null };
        this.end(this.update);
        this.update = undefined;
        return;
      case 'update-is-past':
        this.row = { ...this.row, update_until: null };
        this.update = undefined;
    }
  }

  /** Whatever is on its way arrives, and fetches go on until none is wanted. @returns how many were needed */
  settle(): number {
    while (this.undelivered > 0) this.step({ do: 'deliver', which: 0 });
    for (const fetch of [...this.underWay]) this.end(fetch);
    this.step({ do: 'update-is-past', which: 0 });
    let fetches = 0;
    for (; wantsFetch(this.row) && fetches < 10; fetches += 1) {
      this.end({ ticket: this.rules.ticket(this.row), answer: this.platform });
    }
    return fetches;
  }

  private end(fetch: Fetch): void {
    this.underWay = this.underWay.filter((other) => other !== fetch);
    const fresh = this.rules.apply(this.row, fetch.ticket);
    if (!fresh) return;
    const version = fetch.answer ?? this.platform;
    this.wentBack ||= version < this.stored;
    this.stored = version;
    this.row = fresh;
  }
}

const LATER = new Date(1);

interface Move {
  do:
    | 'change'
    | 'deliver'
    | 'redeliver'
    | 'begin'
    | 'answer'
    | 'end'
    | 'die'
    | 'update'
    | 'update-takes-effect'
    | 'update-is-answered'
    | 'update-is-past';
  which: number;
}

const moves = fc.array(
  fc.record({
    do: fc.constantFrom<Move['do'][]>(
      'change',
      'deliver',
      'redeliver',
      'begin',
      'begin',
      'answer',
      'end',
      'end',
      'die',
      'update',
      'update-takes-effect',
      'update-is-answered',
    ),
    which: fc.nat(5),
  }),
  { maxLength: 60, size: 'max' },
);

function run(rules: Rules, history: Move[]): Model {
  const model = new Model(rules);
  for (const move of history) model.step(move);
  return model;
}

const check = (rules: Rules, law: (model: Model) => boolean) =>
  fc.check(
    fc.property(moves, (history) => law(run(rules, history))),
    propertyRuns(),
  );

const endsNewest = (model: Model) => {
  const fetches = model.settle();
  return model.stored === model.platform && fetches <= 2;
};

describe('fetches that overlap', () => {
  test('when everything has arrived, the newest state of the platform is stored, after at most two more fetches', () => {
    expect(check(OURS, endsNewest)).toMatchObject({ failed: false });
  });

  test('an older answer never overwrites a newer one', () => {
    expect(check(OURS, (model) => !model.wentBack)).toMatchObject({ failed: false });
    expect(check(LAST_ONE_WINS, (model) => !model.wentBack)).toMatchObject({ failed: true });
  });

  test('an event during a fetch causes another fetch', () => {
    const model = new Model(OURS);
    model.step({ do: 'redeliver', which: 0 });
    model.step({ do: 'begin', which: 0 });
    model.step({ do: 'answer', which: 0 });
    model.step({ do: 'change', which: 0 });
    model.step({ do: 'deliver', which: 0 });
    model.step({ do: 'end', which: 0 });
    expect(wantsFetch(model.row)).toBe(true);
    expect(check(COVERS_WHAT_CAME_MEANWHILE, endsNewest)).toMatchObject({ failed: true });
  });

  test('an update whose answer and event are lost is fetched after it took effect', () => {
    expect(check(COVERS_AN_UPDATE_UNDER_WAY, endsNewest)).toMatchObject({ failed: true });
  });

  test('an exact repeat of an event still means "look again"', () => {
    const row = { wanted_generation: 1, fetched_generation: 1, answers: 1 };
    expect(wantsFetch({ ...row, wanted_generation: row.wanted_generation + 1 })).toBe(true);
  });
});
