import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx, toBytes } from '../../database/prisma.service.js';
import type { ProcessingSessionAnswer } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import type { PlatformError } from '../../platform/contract/platform-errors.js';
import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { OK } from '../../platform/pauses/request-calls.js';
import type { DueRow as DueJob } from '../../queue/work/feeder.js';
import type { WorkQueue } from '../../queue/work/work-queue.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { CallGate, type GatedCall } from '../fetch/call-gate.js';
import { FetchesRepository } from '../fetch/fetches.repository.js';
import { SessionContentRepository } from '../fetch/session-content.repository.js';
import { applyEvent } from '../model/apply-event.js';
import { NOT_FOUND_MS, UNENDED_MS } from '../model/next-lookup.js';
import type { ProcessingRow } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionsRepository } from '../model/sessions.repository.js';

/** An event of the Processing API about a session or a processing id. */
interface Noted {
  /** Receipts that no earlier run counted. */
  news: number;
  /** Notes that it announces. */
  notes: number;
  /** Since when its delivery has waited. */
  since: Date;
}

/** What a lookup needs of its row. */
type DueRow = Pick<ProcessingRow, 'processingId' | 'changes' | 'lastEventAt' | 'fault' | 'failures'> &
  Pick<ProcessingRow, 'refusedAt' | 'refusedStatus' | 'notFoundAt'> & { now: Date };

/** A lookup that was due, with its row. */
export interface Lookup extends GatedCall {
  row: DueRow;
  /** The platform's id of its session, if that is known. */
  sessionId: string | undefined;
}

/** Before a processing id in the name of its job; the job of a session has the session's id, a UUID. */
const PREFIX = 'processing:';

const jobOf = (processingId: string): string => `${PREFIX}${processingId}`;

/** The processing id that a job names; undefined for the job of a session. */
export const processingIdOf = (job: string): string | undefined =>
  job.startsWith(PREFIX) ? job.slice(PREFIX.length) : undefined;

/** The platform's processing ids, and the sessions that they name. */
@Injectable()
export class ProcessingsRepository {
  private readonly queue: WorkQueue;

  constructor(
    private readonly prisma: PrismaService,
    private readonly sessions: SessionsRepository,
    private readonly fetches: FetchesRepository,
    private readonly content: SessionContentRepository,
    private readonly gate: CallGate,
    private readonly seal: SessionSeal,
    private readonly contract: Contract,
    queues: WorkQueues,
  ) {
    this.queue = queues.of('sessions');
  }

  /** Makes a processing id due for a lookup, known or not. */
  async note(tx: Tx, processingId: string, { news, notes, since }: Noted): Promise<void> {
    const changes = Math.max(1, news);
    await tx.$executeRaw`
      INSERT INTO processing_sessions AS known (processing_id, changes, notes_events, last_event_at, due_at)
      VALUES (${processingId}, ${changes}, ${notes}, ${since}, clock_timestamp())
      ON CONFLICT (processing_id) DO UPDATE SET changes = known.changes + excluded.changes,
        notes_events = known.notes_events + excluded.notes_events, updated_at = clock_timestamp(),
        last_event_at = greatest(known.last_event_at, excluded.last_event_at),
        due_at = CASE WHEN known.failures > 0 AND known.fault NOT IN ('gone', 'maybe-gone')
          THEN coalesce(known.due_at, excluded.due_at) ELSE excluded.due_at END`;
    this.prisma.afterCommit(tx, () => void this.queue.add(jobOf(processingId)));
  }

  /** Records that an event or an answer mentioned a session of the platform. @returns our id */
  async mention(tx: Tx, sessionId: string, { news, notes, since }: Noted): Promise<string> {
    const { row, isNew } = await this.sessions.createOrLock(tx, sessionId);
    const heard = { now: row.now, since, news: Math.max(news, notes), canFetch: this.sessions.canFetch };
    const event = { eventType: 'PROCESSING', announcesNotes: notes > 0 } as const;
    await this.sessions.save(tx, row, applyEvent(row, event, heard), { isNew });
    return row.id;
  }

  /** @param limit of ids, the longest due first @returns their jobs */
  async due(limit: number): Promise<DueJob[]> {
    const rows = await this.prisma.$queryRaw<{ id: string }[]>`
      SELECT processing_id AS id FROM processing_sessions WHERE due_at <= now() ORDER BY due_at LIMIT ${limit}`;
    return rows.map(({ id }) => ({ id: jobOf(id), urgent: true }));
  }

  /** @returns the lookup of a processing id that may go now, if it is due */
  async begin(processingId: string): Promise<Lookup | undefined> {
    const [row] = await this.prisma.$queryRaw<(DueRow & { sessionId: string | null })[]>`
      SELECT p.processing_id AS "processingId", p.changes, p.fault, p.failures,
        p.refused_at AS "refusedAt", p.refused_status AS "refusedStatus", p.not_found_at AS "notFoundAt",
        p.last_event_at AS "lastEventAt", s.session_id AS "sessionId", clock_timestamp() AS now
      FROM processing_sessions p LEFT JOIN sessions s ON s.id = p.session
      WHERE p.processing_id = ${processingId} AND p.due_at <= clock_timestamp()`;
    const isDue = row && this.contract.canCall('getProcessingSession');
    const probes = isDue ? await this.gate.admit('getProcessingSession', row.now) : undefined;
    if (!row || !probes) return undefined;
    const { now: at, sessionId, refusedAt, refusedStatus } = row;
    return { id: processingId, at, probes, refusedAt, refusedStatus, row, sessionId: sessionId ?? undefined };
  }

  /**
   * Stores the raw answer, and makes the session due that it names. Where sessions cannot be fetched, stores the session in it.
   * An answer to an earlier lookup than the stored one is dropped.
   */
  async storeAnswer(lookup: Lookup, { raw, session, sessionId }: ProcessingSessionAnswer): Promise<void> {
    const { row } = lookup;
    const { processingId, changes } = row;
    const named = sessionId ?? session?.sessionId;
    await this.prisma.transaction(async (tx) => {
      const [known] = await tx.$queryRaw<Pick<ProcessingRow, 'changes' | 'fetchedChanges' | 'notesEvents'>[]>`
        SELECT changes, fetched_changes AS "fetchedChanges", notes_events AS "notesEvents" FROM processing_sessions
        WHERE processing_id = ${processingId} FOR UPDATE`;
      if (known && known.fetchedChanges < changes) {
        const since = row.lastEventAt ?? row.now;
        const noted = { news: 1, notes: known.notesEvents, since };
        const id = named === undefined ? null : await this.mention(tx, named, noted);
        if (id !== null && session && !this.sessions.canFetch) await this.storeSession(tx, id, session);
        const our = id === null ? null : await this.sessions.lockExisting(tx, id);
        const isErased = our ? await this.content.isErased(tx, our, session?.clientUserIds ?? undefined) : false;
        await tx.processingSession.update({
          where: { processingId },
          data: {
            ...{ ourSessionId: id, fetchedChanges: changes, failures: 0, updatedAt: row.now },
            ...{ refusedAt: null, refusedStatus: null, notFoundAt: null },
            answer: isErased ? null : toBytes(this.seal.processingAnswer.seal(processingId, raw)),
            ...(id === null ? { fault: 'names-no-session' } : { fault: null, notesEvents: 0 }),
            dueAt: known.changes > changes ? row.now : null,
          },
        });
      }
      // Last, because every transaction locks rows of sessions before pauses.
      await this.gate.judge(tx, 'getProcessingSession', lookup, OK, row.now);
    });
  }

  /** Stores that a lookup failed. @returns its code */
  async storeFault(lookup: Lookup, error: PlatformError): Promise<string> {
    const { processingId, changes, lastEventAt, now } = lookup.row;
    return this.prisma.transaction(async (tx) => {
      const failed = await this.gate.failed(tx, 'getProcessingSession', lookup, lookup.row, error, now);
      const { retryAt, notFoundAt, ...failure } = failed;
      const since = notFoundAt ?? lastEventAt ?? now;
      const isGivenUp = now.getTime() - since.getTime() >= (notFoundAt ? NOT_FOUND_MS : UNENDED_MS);
      const data = { ...failure, notFoundAt: notFoundAt ?? null, dueAt: isGivenUp ? null : retryAt };
      await tx.processingSession.updateMany({ where: { processingId, changes }, data });
      return failure.fault;
    });
  }

  /** Stores that the work on a processing id threw an error. */
  async postpone(processingId: string, fault: string, retryAt: (failures: number, now: Date) => Date): Promise<void> {
    const [row] = await this.prisma.$queryRaw<{ failures: number; now: Date }[]>`
      SELECT failures, clock_timestamp() AS now FROM processing_sessions WHERE processing_id = ${processingId}`;
    if (!row) return;
    const failures = row.failures + 1;
    const data = { fault, failures, dueAt: retryAt(failures, row.now) };
    await this.prisma.processingSession.updateMany({ where: { processingId, dueAt: { not: null } }, data });
  }

  private async storeSession(tx: Tx, id: string, answer: SessionAnswer): Promise<void> {
    const row = await this.sessions.lockExisting(tx, id);
    const fetch = { no: row.callNo, changes: row.changes, at: row.now, eventAt: row.lastEventAt };
    await this.fetches.store(tx, row, fetch, answer);
  }
}
