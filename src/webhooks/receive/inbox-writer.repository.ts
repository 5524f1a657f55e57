import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { Env } from '../../config/env.js';
import { newPool } from '../../database/database.js';
import { codeOf } from '../../http/problem/fault.js';
import type { SealedPlace } from '../../vault/vault.js';

/** One genuine delivery on its way into the inbox. */
export interface IncomingRow {
  /** Keyed, over timestamp and body: an exact repeat has the same one. */
  signature: Buffer;
  /** Sealed. */
  body: Buffer;
  /** The timestamp header: milliseconds since the Unix epoch. */
  sentAt: string;
  secretIndex: number;
  /** Of the request that brought it. */
  traceparent: string | null;
}

/** Where a body is sealed: its id is not known before the commit, its signature is. @param signature in hex */
export function bodyPlace(signature: string): SealedPlace {
  return { table: 'webhook_deliveries', column: 'body', row: signature };
}

/** Milliseconds after which a connection counts as stuck and is destroyed. */
const STUCK_MS = 2_000;

const ARRIVED = 'unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::smallint[], $5::text[])';
const COLUMNS = 'signature, body, sent_at, secret_index, traceparent';

/** Stores deliveries of which none is there yet: the usual case, at two thirds of the cost of `INSERT_OR_REPEAT`. */
const INSERT = `INSERT INTO webhook_deliveries (${COLUMNS}) SELECT * FROM ${ARRIVED}`;

/**
 * One statement, so one commit: new deliveries are stored; what is there already, or comes twice in the group, is noted
 * as a repeat in a table of its own, for an UPDATE would wait for the worker that holds the delivery's row. The
 * order keeps two groups that hold the same deliveries from locking each other out.
 */
const INSERT_OR_REPEAT = `
  WITH arrived AS (
    SELECT DISTINCT ON (signature) *, count(*) OVER (PARTITION BY signature)::int - 1 AS repeats
    FROM ${ARRIVED} AS a (${COLUMNS}) ORDER BY signature
  ), inserted AS (
    INSERT INTO webhook_deliveries (${COLUMNS}, repeats)
    SELECT * FROM arrived ORDER BY signature
    ON CONFLICT (signature) DO NOTHING
    RETURNING signature
  )
  INSERT INTO webhook_repeats (signature, times)
  SELECT signature, repeats + 1 FROM arrived WHERE signature NOT IN (SELECT signature FROM inserted)`;

/** Waits as an insert does behind whoever changes the inbox's tables, and is given up with it. */
const LOCK_OF_INSERT = `
  BEGIN; LOCK TABLE webhook_deliveries, webhook_repeats IN ROW EXCLUSIVE MODE; COMMIT`;

/** A signature that is there already, or that another group is storing at this moment in another order. */
const REPEATED = new Set(['23505', '40P01']);

/** The receiver's way into the database, over connections of its own. */
@Injectable()
export class InboxWriterRepository implements OnApplicationShutdown {
  private readonly pool: pg.Pool;

  constructor(env: Env) {
    this.pool = newPool({
      connectionString: env.DATABASE_URL,
      max: 3, // two commits, and the health check
      connectionTimeoutMillis: STUCK_MS / 2,
      query_timeout: STUCK_MS,
      statement_timeout: STUCK_MS,
      application_name: 'notebridge-receiver',
    });
  }

  /** Commits all rows or throws. */
  async insert(rows: readonly IncomingRow[]): Promise<void> {
    const values = [
      byteaArray(rows.map((row) => row.signature)),
      byteaArray(rows.map((row) => row.body)),
      rows.map((row) => row.sentAt),
      rows.map((row) => row.secretIndex),
      rows.some((row) => row.traceparent !== null) ? rows.map((row) => row.traceparent) : null,
    ];
    await this.onOneConnection(async (client) => {
      try {
        await client.query({ name: 'insert', text: INSERT, values });
      } catch (error) {
        if (!REPEATED.has(codeOf(error))) throw error;
        await client.query({ name: 'insert-or-repeat', text: INSERT_OR_REPEAT, values });
      }
    });
  }

  /**
   * Takes the lock of an insert, and commits what reaches the write-ahead log and changes no table.
   *
   * @throws when the database can't commit a delivery now
   */
  async tryCommit(): Promise<void> {
    await this.onOneConnection(async (client) => {
      const { rows } = await client.query<{ readOnly: boolean }>(
        `SELECT current_setting('transaction_read_only')::boolean AS "readOnly",
           pg_logical_emit_message(true, 'notebridge-health', '')`,
      );
      if (rows[0]?.readOnly) throw new Error('The database takes no writes from the role of DATABASE_URL.');
      await client.query(LOCK_OF_INSERT);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }

  /** A connection that failed or is stuck is destroyed. */
  private async onOneConnection(work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
    const client = await this.pool.connect();
    let failed = true;
    try {
      await work(client);
      failed = false;
    } finally {
      client.release(failed);
    }
  }
}

/**
 * A `bytea[]`, not empty, in PostgreSQL's binary format (array_recv): dimensions, a flag for nulls, the type of the
 * elements (17 is bytea), their number, the first index, then each with its length. As a text every byte would be two.
 */
export function byteaArray(items: readonly Buffer[]): Buffer {
  const header = [1, 0, 17, items.length, 1];
  const array = Buffer.allocUnsafe(items.reduce((sum, item) => sum + 4 + item.length, 4 * header.length));
  let at = 0;
  for (const word of header) at = array.writeInt32BE(word, at);
  for (const item of items) {
    at = array.writeInt32BE(item.length, at);
    at += item.copy(array, at);
  }
  return array;
}
