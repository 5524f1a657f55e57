import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../database/database.js';
import type { FeedEventResponse } from './feed.dto.js';

/** What the EHR has to know of: what each event means, as docs/reference/events.md says it. */
export const FEED_TYPES = {
  'person.synced': 'The platform has the provider or client as you want it.',
  'person.needs-review':
    'The provider or client does not go on by itself; `code` says why. Show it to an administrator (console, People).',
  'person.failed':
    'The platform rejects the provider or client, and the call is not repeated; `code` says why. Correct the data and PUT it again.',
  'person.deleted': "The provider or client is deleted here, and the platform's user with it.",
  'person.renamed': 'The provider or client has another id, as you asked; `formerExternalId` is the old one.',
  'person.merged':
    'The client stands for another one, too (`formerExternalId`); `platformUser` tells what happens to the user of that one: none, taken-over, kept or deleted.',
  'person.unmerged': 'The client is separate again from the one that stood for it (`survivorExternalId`).',
  'user.created': 'The platform made a user; the subject is the person it belongs to, or `people/unknown-to-ehr`.',
  'session.created': 'A session exists, also one that began in the recorder: link it to your appointment.',
  'session.processing-started': 'The platform works on the session.',
  'session.notes-completed': 'The platform made notes, each time that it makes some; wait for `session.notes-ready`.',
  'session.notes-ready': 'Other notes than before were fetched: read them.',
  'session.completed': 'Processing has ended; with `aiNotesEnabled` false no notes will come: stop waiting.',
  'session.needs-review': 'A request for a session got no answer: resolve it, or show it to an administrator.',
  'session.failed': 'Processing ended with an error, or the request was refused; the session says why.',
  'processing.notes-finished':
    'The platform finished notes of a processing session; the subject is the delivery that announced it.',
  'processing.finished': 'A processing session has ended.',
  'compliance.completed':
    'A check of PDFs has ended, and its result can be read at `result`; null if it is not fetched.',
  'compliance.failed': 'A check of PDFs failed, or the platform rejected it; the job says why.',
  'compliance.needs-review':
    'A check of PDFs got no answer, or its result cannot be read; `code` says which. Resolve it, or show it to an administrator.',
  'smart-edit.completed': 'A smart edit has ended. Nothing else is known of it: its subject has no route.',
  'smart-edit.failed': 'A smart edit failed; as `smart-edit.completed`.',
  'import.finished': 'An import has ended, with its `state`: look at what was rejected.',
};

export type FeedType = keyof typeof FEED_TYPES;

/** An event that a transaction is about to append: ids and codes, never clinical text or a name. */
export interface PendingFeedEvents {
  type: FeedType;
  /** What it is about, as a path below /v1, e.g. `clients/c-1`. */
  subject: string;
  data: Record<string, string | number | boolean | null | string[]>;
}

/** Any fixed number: the transaction that assigns cursors holds this lock. */
const CURSOR_LOCK = 727_003;

/** More than any page holds: a reader at the end finds a whole page of what comes next. */
const CURSORS_AT_ONCE = 1_000;

/**
 * The change feed: what the EHR has to know, in the order in which it became true. Writers take no lock: a row gets its
 * cursor from the first reader after its commit. A number drawn by the writers would pass readers by, since
 * transactions commit in another order than they write.
 */
@Injectable()
export class Feed {
  constructor(private readonly database: Database) {}

  /** Adds an event, which stands or falls with the transaction. */
  async append(tx: PoolClient, { type, subject, data }: PendingFeedEvents): Promise<void> {
    await tx.query('INSERT INTO feed_events (type, at, subject, data) VALUES ($1, clock_timestamp(), $2, $3)', [
      type,
      subject,
      JSON.stringify(data),
    ]);
  }

  /**
   * The events behind a cursor, in order: each once, and none ever comes to stand before one that was read.
   *
   * @param after `0` for the first
   */
  async read(after: string, limit: number): Promise<FeedEventResponse[]> {
    await this.assignCursors();
    const { rows } = await this.database.pool.query<FeedEventResponse>(
      'SELECT cursor, type, at, subject, data FROM feed_events WHERE cursor > $1 ORDER BY cursor LIMIT $2',
      [after, limit],
    );
    return rows;
  }

  /** The cursor of the newest event among the first 1,000 that no reader has seen yet; `0` before the first event. */
  async head(): Promise<string> {
    await this.assignCursors();
    const { rows } = await this.database.pool.query<{ head: string }>(
      'SELECT coalesce(max(cursor), 0)::text AS head FROM feed_events',
    );
    return rows[0]?.head ?? '0';
  }

  /** The events about certain subjects, in the order in which they were written. @param after id of the last one seen */
  async about(
    subjects: readonly string[],
    after: string,
    limit: number,
  ): Promise<(FeedEventResponse & { id: string })[]> {
    const { rows } = await this.database.pool.query<FeedEventResponse & { id: string }>(
      // OFFSET 0: by the index of subjects, and not by walking over everybody's events in the order of their ids.
      `SELECT * FROM (SELECT id, cursor, type, at, subject, data FROM feed_events
         WHERE subject = ANY ($2) AND id > $1 OFFSET 0) AS theirs ORDER BY id LIMIT $3`,
      [after, subjects, limit],
    );
    return rows;
  }

  /**
   * Assigns the next cursors to the oldest committed events without one: more than a page's worth, but not all, so that the
   * first reader of a long feed gets a quick answer. Without such events it takes no lock.
   */
  private async assignCursors(): Promise<void> {
    // ORDER BY selects the partial index. Without it the planner may expect no cursor on any event, and read the table.
    const { rowCount } = await this.database.pool.query(
      'SELECT 1 FROM feed_events WHERE cursor IS NULL ORDER BY id LIMIT 1',
    );
    if (rowCount === 0) return;
    await this.database.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock($1)', [CURSOR_LOCK]);
      await tx.query(
        `UPDATE feed_events f SET cursor = last.cursor + fresh.place
         FROM (SELECT coalesce(max(cursor), 0) AS cursor FROM feed_events) AS last,
           (SELECT id, row_number() OVER (ORDER BY id) AS place FROM
             (SELECT id FROM feed_events WHERE cursor IS NULL ORDER BY id LIMIT $1) AS oldest) AS fresh
         WHERE f.id = fresh.id`,
        [CURSORS_AT_ONCE],
      );
    });
  }
}
