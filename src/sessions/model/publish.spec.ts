import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import type { Mention } from './apply-event.js';
import { type Happened, publish } from './publish.js';
import type { SessionRow } from './session-row.js';
import { at, DAY, fetched, MINUTE, NOW, SECOND, session } from './session-row.spec-support.js';
import { anyEvents, anyLook, type Look, type Published, Worker } from './session-worker.spec-support.js';

const isEnd = ({ type }: { type: string }) => type === 'session.completed' || type === 'session.failed';
const typeOf = (name: string) => `SESSION_PROCESSING_${name}`;

const happened = (fields: Partial<Happened> = {}): Happened => ({ now: NOW, canFetch: true, ...fields });
const published = (row: SessionRow, fields: Partial<Happened> = {}, before: SessionRow | null = row) =>
  publish(before ?? undefined, row, happened(fields));
const types = (...given: Parameters<typeof published>) => published(...given).events.map(({ type }) => type);

describe('a change of a session', () => {
  const final = { aiNotesEnabled: true, aiNotesRank: 2 };

  test('publishes that it is new, with the state that a GET shows', () => {
    const { events } = published(session({ state: 'InProgress' }), { isNew: true }, null);
    expect(events).toEqual([{ type: 'session.created', state: 'InProgress' }]);
  });

  test('publishes nothing while it goes on', () => {
    for (const state of ['InProgress', 'Processing', 'Archived']) expect(types(fetched(state))).toEqual([]);
  });

  test('publishes a transcript, notes and its end in this order', () => {
    const row = fetched('Done', { ...final, notesRevision: 2 });
    const { events } = published(row, { notesChanged: true, transcriptChanged: true });
    expect(events).toEqual([
      { type: 'session.transcript-ready', state: 'Done' },
      { type: 'session.notes-ready', state: 'Done', notesRevision: 2, incomplete: [] },
      { type: 'session.completed', state: 'Done' },
    ]);
  });

  test('publishes notes if another part of the answer is unreadable', () => {
    const known = fetched('Processing', { incomplete: ['topics'] });
    expect(types({ ...known, incomplete: ['topics', 'notes'] }, {}, known)).toEqual(['session.notes-ready']);
    expect(types({ ...known, incomplete: ['topics'] }, {}, known)).toEqual([]);
  });

  test('publishes that a row became an alias of it', () => {
    const row = fetched('Processing');
    expect(published(row, { merged: 'id-1' }).events).toEqual([
      { type: 'session.merged', state: 'Processing', id: 'id-1', into: row.id },
    ]);
  });
});

describe('the end of a session', () => {
  const final = { aiNotesEnabled: true, aiNotesRank: 2 };

  test('is published once it is shown by an answer', () => {
    const { events, end } = published(fetched('Done', { ...final, publishEndBy: at(MINUTE) }));
    expect(events).toEqual([{ type: 'session.completed', state: 'Done' }]);
    expect(end).toEqual({ publishedEnd: 'Done', publishedCode: null, publishEndBy: null });
    expect(types(fetched('Done', { ...final, ...end }))).toEqual([]);
  });

  test('with a failure has its code, also if that becomes known later, once', () => {
    const { events, end } = published(fetched('Error'), { code: 'a' });
    expect(events).toEqual([{ type: 'session.failed', state: 'Error', code: 'a' }]);
    expect(end).toMatchObject({ publishedEnd: 'Error', publishedCode: 'a' });
    const row = fetched('Error', { publishedEnd: 'Error' });
    expect(published(row, { code: 'a' })).toMatchObject({
      ...{ events: [{ type: 'session.failed', code: 'a' }], end: { publishedCode: 'a' } },
    });
    expect(types(row)).toEqual([]);
    expect(types({ ...row, publishedCode: 'a' }, { code: 'b' })).toEqual([]);
  });

  test('that only events say waits for an answer, or until its time', () => {
    const row = session({ ...final, state: 'Done', eventState: 'Done', publishEndBy: at(MINUTE) });
    expect(published(row)).toEqual({
      ...{ events: [], end: { publishedEnd: null, publishedCode: null, publishEndBy: at(MINUTE) } },
    });
    expect(published(row, { now: at(MINUTE) })).toMatchObject({
      ...{ events: [{ type: 'session.completed' }], end: { publishedEnd: 'Done', publishEndBy: null } },
    });
  });

  test('does not wait where sessions cannot be fetched', () => {
    const row = session({ ...final, state: 'Done', eventState: 'Done', publishEndBy: at(MINUTE) });
    expect(types(row, { canFetch: false })).toEqual(['session.completed']);
  });

  test('waits ten minutes for an event that says whether there will be notes', () => {
    const row = fetched('Done', { aiNotesEnabled: true, aiNotesRank: 1 });
    expect(published(row)).toMatchObject({ events: [], end: { publishEndBy: at(10 * MINUTE) } });
    expect(types({ ...row, aiNotesRank: 2 })).toEqual(['session.completed']);
    expect(types({ ...row, publishEndBy: NOW })).toEqual(['session.completed']);
  });

  test('is published again only if it is another', () => {
    expect(types(fetched('Error', { publishedEnd: 'Done' }))).toEqual(['session.failed']);
    expect(types(fetched('Done', { ...final, publishedEnd: 'Error' }))).toEqual(['session.completed']);
  });

  test('is not forgotten if a change comes after its time, but before it was published', () => {
    const row = fetched('Processing', { eventState: 'Done', publishEndBy: at(-SECOND) });
    expect(published(row)).toMatchObject({ events: [], end: { publishEndBy: at(-SECOND) } });
    expect(published({ ...row, eventState: null }).end.publishEndBy).toBeNull();
  });

  test('that COMPLETED said waits on if the answer still shows the failure before it', () => {
    const row = fetched('Error', { eventState: 'Done', publishEndBy: at(MINUTE) });
    expect(published(row)).toMatchObject({ events: [{ type: 'session.failed' }], end: { publishEndBy: at(MINUTE) } });
    expect(published({ ...row, publishedEnd: 'Error' }).end.publishEndBy).toEqual(at(MINUTE));
    expect(published({ ...row, publishedEnd: 'Error', eventState: 'Error' }).end.publishEndBy).toBeNull();
  });
});

describe('the events of a session', () => {
  /** Runs a session until it is quiet. */
  function run(events: { ms: number; of: Mention }[], look: (ms: number) => Look, options: object): Worker {
    const worker = new Worker(look, options);
    for (const { ms, of } of events) worker.hear(of, ms);
    worker.runUntil(60 * DAY);
    return worker;
  }

  const anyLooks = fc.infiniteStream(anyLook);
  const changing = (looks: Iterable<Look>, last: Look) => {
    const stream = looks[Symbol.iterator]();
    return (ms: number) => (ms < DAY ? (stream.next().value as Look) : last);
  };

  test('say what a GET shows, begin with the first, and never repeat an end without a new code', () => {
    fc.assert(
      fc.property(anyEvents, anyLooks, anyLook, fc.boolean(), (events, looks, last, canFetch) => {
        const { published: feed } = run(events, changing(looks, last), { canFetch, latencyMs: 700 });
        expect(feed.flatMap(({ type }, place) => (type === 'session.created' ? [place] : []))).toEqual([0]);
        for (const { state, row } of feed) expect(state).toBe(row.state);
        const ends = feed.filter(isEnd);
        for (const { type, state } of ends)
          expect(type).toBe(state === 'Done' ? 'session.completed' : 'session.failed');
        for (const [place, end] of ends.slice(1).entries()) {
          const previous = ends[place] as Published;
          expect(previous.type !== end.type || (previous.code == null && end.code != null)).toBe(true);
        }
      }),
      propertyRuns(0.2),
    );
  });

  test('have an end within ten minutes after the first event that says so, and at once without fetches', () => {
    const endMs = (feed: Published[], type: string) => feed.find((each) => each.type === type)?.ms ?? Infinity;
    fc.assert(
      fc.property(anyEvents, anyLooks, fc.nat(3 * SECOND), fc.boolean(), (events, looks, latencyMs, canFetch) => {
        const { published: feed } = run(events, changing(looks, 'fault'), { canFetch, latencyMs });
        const completed = events.find(({ of }) => of.eventType === typeOf('COMPLETED'));
        const failed = events.find(({ of }) => of.eventType === typeOf('FAILED'));
        const isTold = completed && 'aiNotesEnabled' in completed.of && completed.of.aiNotesEnabled !== null;
        const wait = 10 * MINUTE + latencyMs;
        if (completed) {
          const byMs = completed.ms + (!canFetch && isTold ? 0 : wait);
          expect(endMs(feed, 'session.completed')).toBeLessThanOrEqual(byMs);
        }
        if (failed)
          expect(feed.find(isEnd)?.ms).toBeLessThanOrEqual(failed.ms + (canFetch ? wait : completed ? wait : 0));
      }),
      propertyRuns(0.2),
    );
  });

  test('are none after the last change, for any repeat of what was said', () => {
    fc.assert(
      fc.property(anyEvents, anyLooks, anyLook, fc.boolean(), (events, looks, last, canFetch) => {
        const worker = run(events, changing(looks, last), { canFetch });
        worker.refresh(61 * DAY);
        worker.runUntil(100 * DAY);
        const { length } = worker.published;
        for (const [place, { of }] of events.entries()) worker.hear(of, (100 + place) * DAY, 0);
        worker.runUntil(150 * DAY);
        expect(worker.published.slice(length)).toEqual([]);
        expect(worker.row?.dueAt).toBeNull();
      }),
      propertyRuns(0.2),
    );
  });
});
