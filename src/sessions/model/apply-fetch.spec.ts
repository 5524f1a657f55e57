import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { applyFetch, type FetchTicket, takeTicket, wantsFetch } from './apply-fetch.js';
import type { Freshness } from './session-row.js';

/** A fetch in flight: its ticket, and the version in the platform's answer. */
interface Fetch {
  ticket: FetchTicket;
  answer: number | null;
}

/** The functions that take a ticket and apply an answer. */
interface Rules {
  ticket(row: Freshness): FetchTicket;
  apply(row: Freshness, ticket: FetchTicket): Freshness | undefined;
}

const RULES: Rules = { ticket: takeTicket, apply: applyFetch };

/** Wrong: treats the answer that arrives last as the newest. */
const LAST_ONE_WINS: Rules = {
  ticket: takeTicket,
  apply: (row, ticket) => ({ ...row, fetchedGeneration: Math.max(row.fetchedGeneration, ticket.generation) }),
};

/** Wrong: the answer covers every event that arrived before it was stored. */
const COVERS_EVENTS_DURING_FETCH: Rules = {
  ticket: takeTicket,
  apply: (row, ticket) => {
    const fresh = applyFetch(row, ticket);
    return fresh && { ...fresh, fetchedGeneration: row.wantedGeneration };
  },
};

/** Wrong: a fetch during an update covers it, although the platform may not have applied it. */
const COVERS_UPDATE_IN_FLIGHT: Rules = {
  ticket: (row) => takeTicket({ ...row, updateUntil: null }),
  apply: applyFetch,
};

/**
 * The platform, the row, and the events and fetches in flight. Every change on the platform sends an event, late and in
 * any order. The platform answers a fetch at any moment between its start and its end. An update also changes the
 * platform, and its event is always lost.
 */
class Model {
  platform = 0;
  stored = 0;
  inFlight: Fetch[] = [];
  undelivered = 0;
  update: Fetch | undefined;
  row: Freshness = { wantedGeneration: 0, fetchedGeneration: 0, answers: 0 };
  wentBack = false;

  constructor(private readonly rules: Rules) {}

  step(move: Move): void {
    const fetch = this.inFlight[move.which % Math.max(1, this.inFlight.length)];
    switch (move.do) {
      case 'change':
        this.platform += 1;
        this.undelivered += 1;
        return;
      case 'deliver':
        if (this.undelivered === 0) return;
        this.undelivered -= 1;
        this.row = { ...this.row, wantedGeneration: this.row.wantedGeneration + 1 };
        return;
      case 'redeliver':
        this.row = { ...this.row, wantedGeneration: this.row.wantedGeneration + 1 };
        return;
      case 'begin':
        if (wantsFetch(this.row)) this.inFlight.push({ ticket: this.rules.ticket(this.row), answer: null });
        return;
      case 'answer':
        if (fetch) fetch.answer ??= this.platform;
        return;
      case 'end':
        if (fetch) this.end(fetch);
        return;
      case 'die':
        this.inFlight = this.inFlight.filter((other) => other !== fetch);
        return;
      case 'update':
        if (this.update) return;
        this.update = { ticket: this.rules.ticket(this.row), answer: null };
        this.row = { ...this.row, wantedGeneration: this.row.wantedGeneration + 1, updateUntil: LATER };
        return;
      case 'update-takes-effect':
        if (!this.update || this.update.answer !== null) return;
        this.platform += 1;
        this.update.answer = this.platform;
        return;
      case 'update-is-answered':
        if (this.update?.answer == null) return;
        this.row = { ...this.row, updateUntil: null };
        this.end(this.update);
        this.update = undefined;
        return;
      case 'update-is-past':
        this.row = { ...this.row, updateUntil: null };
        this.update = undefined;
    }
  }

  /** Delivers all events and answers, then fetches until no fetch is wanted. @returns the number of these fetches */
  settle(): number {
    while (this.undelivered > 0) this.step({ do: 'deliver', which: 0 });
    for (const fetch of [...this.inFlight]) this.end(fetch);
    this.step({ do: 'update-is-past', which: 0 });
    let fetches = 0;
    for (; wantsFetch(this.row) && fetches < 10; fetches += 1) {
      this.end({ ticket: this.rules.ticket(this.row), answer: this.platform });
    }
    return fetches;
  }

  private end(fetch: Fetch): void {
    this.inFlight = this.inFlight.filter((other) => other !== fetch);
    const fresh = this.rules.apply(this.row, fetch.ticket);
    if (!fresh) return;
    const version = fetch.answer ?? this.platform;
    this.wentBack ||= version < this.stored;
    this.stored = version;
    this.row = { ...this.row, ...fresh };
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

describe('overlapping fetches', () => {
  test('store the newest state after at most two more fetches', () => {
    expect(check(RULES, endsNewest)).toMatchObject({ failed: false });
  });

  test('never overwrite a newer answer with an older one', () => {
    expect(check(RULES, (model) => !model.wentBack)).toMatchObject({ failed: false });
    expect(check(LAST_ONE_WINS, (model) => !model.wentBack)).toMatchObject({ failed: true });
  });

  test('are followed by another fetch if an event arrives during one', () => {
    const model = new Model(RULES);
    model.step({ do: 'redeliver', which: 0 });
    model.step({ do: 'begin', which: 0 });
    model.step({ do: 'answer', which: 0 });
    model.step({ do: 'change', which: 0 });
    model.step({ do: 'deliver', which: 0 });
    model.step({ do: 'end', which: 0 });
    expect(wantsFetch(model.row)).toBe(true);
    expect(check(COVERS_EVENTS_DURING_FETCH, endsNewest)).toMatchObject({ failed: true });
  });

  test('are followed by one after an update whose answer and event are lost', () => {
    const history = (['update', 'begin', 'answer', 'end', 'update-takes-effect'] as const).map((what): Move => {
      return { do: what, which: 0 };
    });
    expect(endsNewest(run(RULES, history))).toBe(true);
    expect(endsNewest(run(COVERS_UPDATE_IN_FLIGHT, history))).toBe(false);
  });

  test('are followed by another fetch after an exact repeat of an event', () => {
    const row = { wantedGeneration: 1, fetchedGeneration: 1, answers: 1 };
    expect(wantsFetch({ ...row, wantedGeneration: row.wantedGeneration + 1 })).toBe(true);
  });
});
