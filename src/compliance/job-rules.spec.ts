import type { JobRow } from './job-row.js';
import * as rules from './job-rules.js';
import { type Change, errorCode, isResolvable, type JobFeedEvent, nextLookup, type Readable } from './job-rules.js';

type Rules = Pick<typeof rules, 'afterEvent' | 'afterLookup' | 'givenUp'>;

const NOW = new Date('2026-11-30T10:00:00Z');
const CAN: Record<'ends' | 'results', Readable> = {
  ends: { results: true, ends: true },
  results: { results: true, ends: false },
};

const row = (fields: Partial<JobRow> = {}): JobRow => ({
  ...{ id: '', jobId: 'j', aliasOf: null, state: 'Submitted', files: null, message: null, callNo: 0, attemptedAt: NOW },
  ...{ result: null, lastEventAt: null, publishedAt: null, review: null, removedAt: null, dueAt: null, giveUpAt: null },
  ...{ createdAt: NOW, updatedAt: NOW, ...rules.NO_FAULT, ...fields },
});

/** One job: what events, answers and time do to it, and what is published. */
class Model {
  readonly feed: JobFeedEvent[] = [];
  job = row();

  constructor(
    private readonly given: Rules,
    private readonly can: Readable,
    private readonly end: 'Completed' | 'Failed',
  ) {}

  readonly steps = {
    completed: () => this.apply(this.given.afterEvent(this.job, 'Completed', this.can, NOW)),
    failed: () => this.apply(this.given.afterEvent(this.job, 'Failed', this.can, NOW)),
    running: () => this.lookup(this.can.ends ? 'running' : 'unknown'),
    read: () => this.lookup(this.can.ends ? (this.end === 'Completed' ? 'completed' : 'failed') : 'unknown'),
    hour: () => this.job.giveUpAt && this.apply(this.given.givenUp(this.job, NOW)),
  };

  private lookup(found: Parameters<Rules['afterLookup']>[1]): void {
    if (this.job.result !== null) return;
    const change = this.given.afterLookup(this.job, found, NOW);
    if (change) this.apply({ ...change, changes: { ...change.changes, result: new Uint8Array([1]) } });
  }

  private apply(change: Change | undefined): void {
    if (!change) return;
    this.job = { ...this.job, ...change.changes };
    if (change.publish) this.feed.push(change.publish);
  }
}

type Step = keyof Model['steps'];
const STEPS: readonly Step[] = ['completed', 'failed', 'running', 'read', 'hour', 'hour'];

function* permutations<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield [];
  for (const [at, item] of items.entries())
    for (const rest of permutations([...items.slice(0, at), ...items.slice(at + 1)])) yield [item, ...rest];
}

/** Plays every order of the steps, each with one step repeated, as after a crash. @returns the orders that break a law */
function broken(given: Rules, can: Readable): string[] {
  return (['Completed', 'Failed'] as const).flatMap((end) =>
    [...permutations(STEPS)].flatMap((order) =>
      order.flatMap((_, crashAt) => {
        const model = new Model(given, can, end);
        const steps: Step[] = [...order.slice(0, crashAt + 1), ...order.slice(crashAt), 'read', 'hour'];
        for (const step of steps) model.steps[step]();
        const ends = model.feed.filter(({ type }) => type !== 'compliance.needs-review');
        const isRight =
          ends.length === 1 &&
          model.feed.length - ends.length <= 1 &&
          ends[0]?.state === model.job.state &&
          ends[0].hasResult === can.ends &&
          (!can.ends || model.job.state === end) &&
          model.job.result !== null &&
          model.job.review === null;
        return isRight ? [] : [`${end}: ${steps.join(' ')}`];
      }),
    ),
  );
}

test.each(Object.values(CAN))('every order leaves one end in the feed, by lookups that show %j', (can) => {
  expect(broken(rules, can)).toEqual([]);
});

const NAIVE: [name: string, given: Partial<Rules>][] = [
  ['publishes at the event', { afterEvent: (job, end, _can, now) => rules.afterEvent(job, end, CAN.results, now) }],
  [
    'publishes again at the lookup',
    { afterLookup: (job, found, now) => rules.afterLookup({ ...job, publishedAt: null }, found, now) },
  ],
  [
    'lets an event change a final answer',
    {
      afterEvent: (job, end, can, now) => rules.afterEvent({ ...job, result: null, publishedAt: null }, end, can, now),
    },
  ],
  ['asks for a review each hour', { givenUp: (job, now) => rules.givenUp({ ...job, review: null }, now) }],
];

test.each(NAIVE)('the laws notice a rule that %s', (_name, given) => {
  expect(Object.values(CAN).flatMap((can) => broken({ ...rules, ...given }, can))).not.toEqual([]);
});

test.each([
  ['Unknown', {}, true],
  ['Uploading', {}, false],
  ['Submitting', {}, false],
  ['Submitted', {}, false],
  ['Submitted', { fault: 'maybe-gone' }, true],
  ['Completed', { review: 'result-unreadable' }, true],
  ['Completed', { fault: 'gone', result: new Uint8Array([1]) }, false],
  ['Completed', { fault: 'gone', removedAt: NOW }, false],
  ['Rejected', {}, false],
  ['Abandoned', { fault: 'gone' }, false],
] as const)('a job in the state %s with %j can be resolved: %j', (state, fields, expected) => {
  expect(isResolvable(row({ state, ...fields }))).toBe(expected);
});

test.each([
  [{ state: 'Submitted' }, null],
  [{ state: 'Submitted', fault: 'maybe-gone' }, 'maybe-gone'],
  [{ state: 'Unknown', review: 'submission-unknown' }, 'submission-unknown'],
  [{ state: 'Rejected' }, 'platform-rejected'],
  [{ state: 'Rejected', attemptedAt: null }, 'not-submitted'],
  [{ state: 'Abandoned', fault: 'gone' }, 'abandoned'],
  [{ state: 'Completed', review: 'result-unreadable', fault: 'gone' }, 'result-unreadable'],
] as const)('a job with %j shows the code %j', (fields, code) => {
  expect(errorCode(row(fields), CAN.ends)).toBe(code);
});

test('an end whose result no lookup will bring says so', () => {
  const none = { results: false, ends: false };
  expect(errorCode(row({ state: 'Completed', publishedAt: NOW }), none)).toBe('no-result');
  expect(errorCode(row({ state: 'Completed', removedAt: NOW }), none)).toBeNull();
});

test('an abandoned job stays abandoned', () => {
  expect(rules.afterEvent(row({ state: 'Abandoned' }), 'Completed', CAN.ends, NOW)).toBeUndefined();
});

test('lookups become rarer with the age of a job, from the setting to six hours', () => {
  const waits = [0, 20, 3_600, 3 * 86_400].map((seconds) => {
    const job = row({ attemptedAt: new Date(NOW.getTime() - seconds * 1_000) });
    return (nextLookup(job, NOW, 5_000).getTime() - NOW.getTime()) / 1_000;
  });
  expect(waits).toEqual([5, 10, 1_800, 21_600]);
});
