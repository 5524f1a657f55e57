import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type pg from 'pg';
import { Env } from '../../config/env.js';
import { connectionShares } from '../../database/connect/connection-shares.js';
import { discardConnections, keepOpen, newPool } from '../../database/connect/pools.js';
import { codeOf } from '../../errors/error-code.js';
import type { SealedPlace } from '../../vault/vault.js';
import { byteaArray } from './bytea-array.js';

/** One genuine delivery on its way into the inbox. */
export interface IncomingRow {
  /** Keyed, over timestamp and body: an exact repeat has the same one. */
  signature: Buffer;
  /** Encrypted. */
  body: Buffer;
  /** The timestamp header: milliseconds since the Unix epoch. */
  sentAt: string;
  secretIndex: number;
}

/** The place of an encrypted body. Unlike its id, the signature is known before the commit. @param signature in hex */
export function bodyPlace(signature: string): SealedPlace {
  return { table: 'webhook_deliveries', column: 'body', row: signature };
}

/** How long a statement may take before its connection counts as stuck and is destroyed. */
const STUCK_MS = 2_000;

const ARRIVED = 'unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::smallint[])';
const COLUMNS = 'signature, body, sent_at, secret_index';

/** Stores new deliveries: the usual case, at two thirds of the cost of `INSERT_OR_REPEAT`. */
const INSERT = `INSERT INTO webhook_deliveries (${COLUMNS}) SELECT * FROM ${ARRIVED}`;

/**
 * One statement, so one commit. New deliveries are stored. Repeats go to a separate table, because an UPDATE would
 * wait for a worker that has locked the delivery's row. The order prevents deadlocks of groups with the same deliveries.
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

/** SQLSTATEs of a stored signature, and of one that another group stores at this moment in another order. */
const REPEATED = new Set(['23505', '40P01']);

/** Writes deliveries over its own connections, so that other work never delays the receiver. */
@Injectable()
export class InboxWriterRepository implements OnModuleInit, OnApplicationShutdown {
  private readonly pool: pg.Pool;

  constructor(private readonly env: Env) {
    this.pool = newPool({
      connectionString: env.DATABASE_URL,
      max: connectionShares(env).receiver,
      idleTimeoutMillis: 0,
      connectionTimeoutMillis: STUCK_MS / 2,
      query_timeout: STUCK_MS,
      statement_timeout: STUCK_MS,
      application_name: 'notebridge-receiver',
    });
  }

  async onModuleInit(): Promise<void> {
    if (this.env.hasRole('api')) await keepOpen(this.pool);
  }

  /** @throws if not all rows are committed */
  async insert(rows: readonly IncomingRow[]): Promise<void> {
    const values = [
      byteaArray(rows.map((row) => row.signature)),
      byteaArray(rows.map((row) => row.body)),
      rows.map((row) => row.sentAt),
      rows.map((row) => row.secretIndex),
    ];
    const client = await this.pool.connect();
    let isUsable = false; // a connection that failed or is stuck is destroyed
    try {
      await client.query({ name: 'insert', text: INSERT, values }).catch(async (error: unknown) => {
        if (!REPEATED.has(codeOf(error))) throw error;
        await client.query({ name: 'insert-or-repeat', text: INSERT_OR_REPEAT, values });
      });
      isUsable = true;
    } finally {
      client.release(!isUsable);
    }
  }

  /** @throws if the server of the inbox does not answer, or is no primary */
  async checkConnection(): Promise<void> {
    const { rows } = await this.pool.query<{ readOnly: boolean }>(
      `SELECT current_setting('transaction_read_only')::boolean AS "readOnly"`,
    );
    if (!rows[0]?.readOnly) return;
    discardConnections(this.pool);
    throw new Error('The database accepts no writes from the role of DATABASE_URL.');
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
