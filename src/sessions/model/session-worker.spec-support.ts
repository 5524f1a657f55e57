import fc from 'fast-check';
import { backoffMs, FAULT_BACKOFF, NOT_FOUND_BACKOFF } from '../../queue/work/backoff.js';
import { applyEvent, endByEvents, type Mention } from './apply-event.js';
import { applyFailure, applyFetch, type Fetch, isOutdated } from './apply-fetch.js';
import { nextLookup } from './next-lookup.js';
import { type Happened, publish, type SessionFeedEvent } from './publish.js';
import type { SessionRow } from './session-row.js';
import { answer, at, type EventName, event, POLICY, session } from './session-row.spec-support.js';

/** What the platform answers: a state with all notes that it has so far, or no session. */
export type Look = 'fault' | 'gone' | { state: string; notes: number; code?: string };

export const anyLook: fc.Arbitrary<Look> = fc.oneof(
  fc.constantFrom<Look>('fault', 'gone'),
  fc.record({
    state: fc.constantFrom('InProgress', 'Processing', 'Archived', 'Error', 'Done'),
    notes: fc.nat(3),
    code: fc.constantFrom(undefined, 'low-content-transcript'),
  }),
);

const anyMention: fc.Arbitrary<Mention> = fc.oneof(
  fc.constant<Mention>({ eventType: 'PROCESSING', announcesNotes: true }),
  ...(['CREATED', 'PROCESSING_STARTED', 'PROCESSING_NOTES_COMPLETED'] as const).map(anyOf),
  ...(['PROCESSING_COMPLETED', 'PROCESSING_FAILED'] as const).map(anyOf),
);

function anyOf(name: EventName): fc.Arbitrary<Mention> {
  return fc.constantFrom(true, false, null).map((aiNotesEnabled) => event(name, aiNotesEnabled));
}

/** Events of a session in the order of their arrival, within two hours. */
export const anyEvents = fc
  .array(fc.record({ ms: fc.nat(7_200).map((seconds) => seconds * 1_000), of: anyMention }), {
    minLength: 1,
    maxLength: 8,
  })
  .map((events) => events.toSorted((left, right) => left.ms - right.ms));

/** An event of the feed, with the row that a GET shows then. */
export interface Published extends SessionFeedEvent {
  ms: number;
  row: SessionRow;
}

/**
 * The inbox and the worker of one session, as they apply the rules, in simulated time: all times are milliseconds after
 * `NOW`. A fetch takes `latencyMs`; the platform answers it when it begins.
 */
export class Worker {
  row: SessionRow | undefined;
  ms = 0;
  readonly fetches: number[] = [];
  readonly published: Published[] = [];
  private inFlight: { fetch: Fetch; look: Look; endsMs: number } | undefined;

  constructor(
    private readonly look: (ms: number) => Look,
    private readonly options: { canFetch?: boolean; latencyMs?: number } = {},
  ) {}

  get canFetch(): boolean {
    return this.options.canFetch ?? true;
  }

  /** Delivers an event, once everything that was due before has been done. */
  hear(event: Mention, ms: number, news = 1): void {
    this.runUntil(ms);
    const { now, canFetch } = this;
    const row = this.row ?? session({ createdAt: now, updatedAt: now });
    this.save(row, applyEvent(row, event, { now, since: now, news, canFetch }), { isNew: this.row === undefined });
  }

  /** Makes the session due by hand. */
  refresh(ms: number): void {
    this.runUntil(ms);
    const { row } = this;
    if (row) this.save(row, { changes: row.changes + 1, failures: 0, fault: null, retryAt: null });
  }

  /** Does what is due until a time. */
  runUntil(ms: number): void {
    for (let next = this.nextMs(); next !== undefined && next <= ms; next = this.nextMs()) {
      this.ms = Math.max(this.ms, next);
      if (this.inFlight) this.end(this.inFlight);
      else this.begin();
    }
    this.ms = Math.max(this.ms, ms);
  }

  private get now(): Date {
    return at(this.ms);
  }

  private nextMs(): number | undefined {
    if (this.inFlight) return this.inFlight.endsMs;
    const { dueAt = null } = this.row ?? {};
    return dueAt === null ? undefined : dueAt.getTime() - at(0).getTime();
  }

  private begin(): void {
    const row = this.row as SessionRow;
    const { what, at: dueAt } = nextLookup(row, this.now, POLICY);
    if (dueAt === null || dueAt > this.now) throw new Error('A lookup that was due was postponed.');
    if (what === 'publish') {
      this.save(row, endByEvents(row, this.now));
      return;
    }
    if (!this.canFetch) {
      // No fetch is sent; the row waits for the end that it publishes, if it does.
      this.row = { ...row, dueAt: row.publishEndBy };
      return;
    }
    if (this.fetches.at(-1) === this.ms && row.changes === row.fetchedChanges) throw new Error('The worker spins.');
    this.fetches.push(this.ms);
    this.row = { ...row, callNo: row.callNo + 1 };
    const fetch = { no: row.callNo + 1, changes: row.changes, at: this.now };
    this.inFlight = { fetch, look: this.look(this.ms), endsMs: this.ms + (this.options.latencyMs ?? 0) };
  }

  private end({ fetch, look }: { fetch: Fetch; look: Look }): void {
    this.inFlight = undefined;
    const row = this.row as SessionRow;
    const { now } = this;
    if (isOutdated(row, fetch)) return;
    if (look === 'gone' || look === 'fault') {
      const failures = row.failures + 1;
      const waitMs = backoffMs(failures, 0.5, look === 'gone' ? NOT_FOUND_BACKOFF : FAULT_BACKOFF);
      const retryAt = new Date(now.getTime() + waitMs);
      const notFound = look === 'gone' && { notFoundAt: row.notFoundAt ?? now };
      const fault = look === 'gone' ? 'gone' : 'platform-fault';
      this.save(row, applyFailure(row, fetch, { fault, failures, retryAt, ...notFound }, now));
      return;
    }
    const newRevisions = Math.max(0, look.notes - row.notesRevision);
    const notesChanged = newRevisions > 0;
    const changes = applyFetch(row, fetch, answer({ state: look.state }), { notesChanged, newRevisions, now });
    const isNews = row.fetchedAt === null || changes.state !== row.state || notesChanged || row.notFoundAt !== null;
    const notesRevision = Math.max(look.notes, row.notesRevision);
    const code = look.state === 'Error' ? (look.code ?? null) : null;
    this.save(row, { ...changes, notesRevision, ...(isNews && { updatedAt: now }) }, { notesChanged, code });
  }

  private save(row: SessionRow, changes: Partial<SessionRow>, happened: Omit<Happened, 'now' | 'canFetch'> = {}): void {
    const { now, canFetch } = this;
    const after = { ...row, ...changes };
    const { events, end } = publish(happened.isNew ? undefined : row, after, { ...happened, now, canFetch });
    const saved = { ...after, ...end };
    this.row = { ...saved, dueAt: nextLookup(saved, now, POLICY).at };
    for (const event of events) this.published.push({ ...event, ms: this.ms, row: this.row });
  }
}
