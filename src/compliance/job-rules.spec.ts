import type { JobEnd, JobRow } from './job.js';
import {
  afterEvent,
  afterLongWait,
  afterLookup,
  isSettled,
  type JobFacts,
  type JobFeedEvent,
  resolveActions,
} from './job-rules.js';

type Rules = Pick<typeof import('./job-rules.js'), 'afterEvent' | 'afterLookup' | 'afterLongWait'>;
type Change = ReturnType<Rules['afterEvent']>;

const RULES: Rules = { afterEvent, afterLookup, afterLongWait };

const SUBMITTED: JobFacts = { state: 'Submitted', isRead: false, isAnnounced: false, review: null };

/** A submission and a platform that ends its job, as the tables would hold them. */
class Model {
  readonly feed: JobFeedEvent[] = [];
  /** The row that shows the job: the submission's, or that of an event which came before the answer. */
  private shown: JobFacts | null = null;
  private eventRow: JobFacts | null = null;

  constructor(
    private readonly rules: Rules,
    private readonly canReadEnds: boolean,
    private readonly end: JobEnd,
  ) {}

  get job(): JobFacts | null {
    return this.shown;
  }

  /** Rows that a list shows. */
  get rows(): number {
    return Number(this.shown !== null) + Number(this.eventRow !== null);
  }

  readonly steps = {
    completed: () => this.event('Completed'),
    failed: () => this.event('Failed'),
    answer: () => {
      this.shown ??= this.eventRow ?? SUBMITTED;
      this.eventRow = null;
    },
    running: () => this.lookup(this.canReadEnds ? 'running' : 'unknown'),
    notFound: () => undefined,
    read: () => this.lookup(this.canReadEnds ? (this.end === 'Completed' ? 'completed' : 'failed') : 'unknown'),
    hour: () => this.apply((job) => this.rules.afterLongWait(job)),
  };

  private event(end: JobEnd): void {
    if (!this.known) this.eventRow = SUBMITTED;
    this.apply((job) => this.rules.afterEvent(job, end, this.canReadEnds));
  }

  private lookup(found: Parameters<Rules['afterLookup']>[1]): void {
    this.apply((job) => (job.isRead ? undefined : this.rules.afterLookup(job, found)));
  }

  private get known(): JobFacts | null {
    return this.shown ?? this.eventRow;
  }

  private apply(rule: (job: JobFacts) => Change): void {
    const change = this.known && rule(this.known);
    if (!change) return;
    if (this.shown) this.shown = change.job;
    else this.eventRow = change.job;
    if (change.publish) this.feed.push(change.publish);
  }
}

type Step = keyof Model['steps'];
const STEPS: readonly Step[] = ['completed', 'failed', 'answer', 'running', 'notFound', 'read', 'hour'];

function* permutations<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield [];
  for (const [at, item] of items.entries()) {
    for (const rest of permutations([...items.slice(0, at), ...items.slice(at + 1)])) yield [item, ...rest];
  }
}

const ORDERS = [...permutations(STEPS)];

/** Plays every order of the steps, each with one step repeated, as after a crash. @returns the orders that break a law */
function broken(rules: Rules, canReadEnds: boolean): string[] {
  return (['Completed', 'Failed'] as const).flatMap((end) =>
    ORDERS.flatMap((order) =>
      order.flatMap((_, crashAt) => {
        const model = new Model(rules, canReadEnds, end);
        const steps = [...order.slice(0, crashAt + 1), ...order.slice(crashAt), 'answer', 'read', 'hour'] as Step[];
        for (const step of steps) model.steps[step]();
        const ends = model.feed.filter(({ type }) => type !== 'compliance.needs-review');
        const reviews = model.feed.length - ends.length;
        const isRight =
          model.rows === 1 &&
          ends.length === 1 &&
          reviews <= 1 &&
          ends[0]?.state === model.job?.state &&
          ends[0]?.hasResult === canReadEnds &&
          (!canReadEnds || model.job?.state === end) &&
          model.job?.isRead === true &&
          model.job.review === null;
        return isRight ? [] : [`${end}: ${steps.join(' ')}`];
      }),
    ),
  );
}

test.each([true, false])('every order leaves one job and one end in the feed (ends can be read: %j)', (canReadEnds) => {
  expect(broken(RULES, canReadEnds)).toEqual([]);
});

const NAIVE: [name: string, rules: Partial<Rules>][] = [
  ['publishes at the event', { afterEvent: (job, end) => afterEvent(job, end, false) }],
  [
    'publishes again at the lookup',
    { afterLookup: (job, found) => afterLookup({ ...job, isAnnounced: false }, found) },
  ],
  [
    'lets an event change a final answer',
    { afterEvent: (job, end, can) => afterEvent({ ...job, isRead: false, isAnnounced: false }, end, can) },
  ],
  ['asks for a review each hour', { afterLongWait: (job) => afterLongWait({ ...job, review: null }) }],
];

test.each(NAIVE)('the laws notice a rule that %s', (_name, rules) => {
  expect([true, false].flatMap((canReadEnds) => broken({ ...RULES, ...rules }, canReadEnds))).not.toEqual([]);
});

test('Completed overrides Failed until the result is read', () => {
  const states = (ends: JobEnd[]) => ends.reduce((job, end) => afterEvent(job, end, true)?.job ?? job, SUBMITTED).state;
  expect([states(['Failed', 'Completed']), states(['Completed', 'Failed'])]).toEqual(['Completed', 'Completed']);
});

test('a published end whose result stays unread is reviewed once', () => {
  const announced: JobFacts = { ...SUBMITTED, state: 'Completed', isAnnounced: true };
  const reviewed = afterLongWait(announced);
  expect(reviewed).toMatchObject({
    job: { review: 'result-unreadable' },
    publish: { type: 'compliance.needs-review' },
  });
  expect(afterLongWait(reviewed?.job as JobFacts)).toBeUndefined();
  expect(afterLongWait({ ...announced, isRead: true })).toBeUndefined();
});

test('an abandoned job stays abandoned', () => {
  expect(afterEvent({ ...SUBMITTED, state: 'Abandoned' }, 'Completed', true)).toBeUndefined();
});

test('a job can be resolved as its submission and the lookups allow', () => {
  const stored = { result: null, fault: null, request: Buffer.from('x'), leaseOwner: null };
  const all = ['link', 'create', 'abandon'];
  expect(resolveActions({ ...stored, state: 'Unknown' })).toEqual(all);
  expect(resolveActions({ ...stored, state: 'Unknown', request: null })).toEqual(['link', 'abandon']);
  expect(resolveActions({ ...stored, state: 'Requested' })).toEqual(['abandon']);
  expect(resolveActions({ ...stored, state: 'Requested', leaseOwner: 'w-1' })).toEqual([]);
  expect(resolveActions({ ...stored, state: 'Submitted' })).toEqual([]);
  expect(resolveActions({ ...stored, state: 'Completed', fault: 'gone' })).toEqual(all);
  expect(resolveActions({ ...stored, state: 'Failed', fault: 'maybe-gone' })).toEqual(['link', 'abandon']);
  expect(resolveActions({ ...stored, state: 'Completed', fault: 'gone', result: Buffer.from('x') })).toEqual([]);
});

test('a published end without a result is settled only if the contract has no lookup', () => {
  const row = {
    state: 'Completed',
    result: null,
    removedAt: null,
    announcedAt: new Date(0),
    review: null,
    fault: null,
  };
  expect([true, false].map((canLookUp) => isSettled(row as JobRow, canLookUp))).toEqual([false, true]);
  expect(isSettled({ ...row, announcedAt: null } as JobRow, false)).toBe(false);
});
