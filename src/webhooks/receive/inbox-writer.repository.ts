import { Injectable, Logger } from '@nestjs/common';
import pg from 'pg';
import { Env } from '../../config/env.js';
import { SESSION_OPTIONS } from '../../database/database.js';
import { byteaArray } from './bytea-array.js';

/** One genuine delivery on its way into the inbox. */
export interface IncomingRow {
  /** Keyed, over timestamp and body: an exact repeat has the same one. */
  signature: Buffer;
  /** Sealed. */
  body: Buffer;
  /** The timestamp header: milliseconds since the Unix epoch. */
  sentAt: string;
  secretIndex: number;
}

/** Commits that may be under way at once: while one waits for the disk, the next is being gathered and sent. */
export const COMMITS_IN_FLIGHT = 2;

/** Milliseconds after which a connection counts as stuck and is destroyed. */
const STUCK_MS = 2_000;

/** Milliseconds to wait for a new connection. */
const CONNECT_MS = 1_000;

/** Stores deliveries of which none is there yet: the usual case, at two thirds of the cost of `KEEP_OR_REPEAT`. */
const KEEP = `
  INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index)
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::smallint[])`;

/**
 * One statement, so one commit: new deliveries are stored; what is there already is noted as a repeat in a table of
 * its own, because an UPDATE would wait for the worker that holds the delivery's row. The order keeps two groups that
 * hold the same deliveries from locking each other out.
 */
const KEEP_OR_REPEAT = `
  WITH arrived AS (
    SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::smallint[], $5::int[])
      AS a (signature, body, sent_at, secret_index, repeats)
  ), kept AS (
    INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index, repeats)
    SELECT * FROM arrived ORDER BY signature
    ON CONFLICT (signature) DO NOTHING
    RETURNING signature
  )
  INSERT INTO webhook_repeats (signature, times)
  SELECT signature, repeats + 1 FROM arrived WHERE signature NOT IN (SELECT signature FROM kept)`;

/** A signature that is there already, or that another group is storing at this moment in another order. */
const REPEATED = new Set(['23505', '40P01']);

/** The receiver's way into the database, over connections that nobody else uses up. */
@Injectable()
export class InboxWriterRepository {
  private readonly log = new Logger(InboxWriterRepository.name);
  private readonly pool: pg.Pool;

  constructor(env: Env) {
    this.pool = new pg.Pool({
      connectionString: env.DATABASE_URL,
      max: COMMITS_IN_FLIGHT + 1, // one for the health check
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: STUCK_MS,
      statement_timeout: STUCK_MS,
      keepAlive: true,
      options: SESSION_OPTIONS,
      application_name: 'notebridge receiver',
    });
    this.pool.on('error', (error) => this.log.warn(`an idle receiver connection was lost: ${error.name}`));
    // One that dies while it is in use fails its statement; without a listener it would end the process too.
    this.pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /** Commits all rows or throws; a connection that failed or is stuck is destroyed. */
  async keep(rows: readonly IncomingRow[]): Promise<void> {
    await this.onOneConnection(async (client) => {
      try {
        await client.query({ name: 'keep', text: KEEP, values: columns(rows) });
      } catch (error) {
        if (!isRepeated(error)) throw error;
        const { distinct, repeats } = foldRepeats(rows);
        await client.query({ name: 'keep-or-repeat', text: KEEP_OR_REPEAT, values: [...columns(distinct), repeats] });
      }
    });
  }

  /**
   * Commits what reaches the write-ahead log and changes no table: it fails on a standby and on a full disk, but not in
   * a read-only transaction.
   *
   * @throws when the database can't commit now
   */
  async tryCommit(): Promise<void> {
    await this.onOneConnection(async (client) => {
      const { rows } = await client.query<{ readOnly: boolean }>(
        `SELECT current_setting('transaction_read_only')::boolean AS "readOnly",
           pg_logical_emit_message(true, 'notebridge-health', '')`,
      );
      if (rows[0]?.readOnly) throw new Error('The database takes no writes from the role of DATABASE_URL.');
    });
  }

  /** Closes the connections; nothing may be kept afterwards. */
  async close(): Promise<void> {
    await this.pool.end();
  }

  private async onOneConnection(work: (client: pg.PoolClient) => Promise<unknown>): Promise<void> {
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

const columns = (rows: readonly IncomingRow[]) => [
  byteaArray(rows.map((row) => row.signature)),
  byteaArray(rows.map((row) => row.body)),
  rows.map((row) => row.sentAt),
  rows.map((row) => row.secretIndex),
];

const isRepeated = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && REPEATED.has(String(error.code));

/** A group may hold one delivery several times; the database takes it once, with the number of its repeats. */
function foldRepeats(rows: readonly IncomingRow[]): { distinct: IncomingRow[]; repeats: number[] } {
  const places = new Map<string, number>();
  const distinct: IncomingRow[] = [];
  const repeats: number[] = [];
  for (const row of rows) {
    const key = row.signature.toString('latin1');
    const place = places.get(key);
    if (place === undefined) {
      places.set(key, distinct.push(row) - 1);
      repeats.push(0);
    } else {
      repeats[place] = (repeats[place] ?? 0) + 1;
    }
  }
  return { distinct, repeats };
}
