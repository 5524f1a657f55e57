import type pg from 'pg';
import type { Database } from '../../src/database/database.js';

/** The command tag of a statement that changed at least one row. */
const CHANGED_ROWS = /^(INSERT|UPDATE|DELETE|MERGE|COPY)\b.* [1-9]\d*$/;

/** How many statements the error of a world that never settles lists. */
const LISTED_STATEMENTS = 30;

/**
 * Counts the statements with which the service changed rows, heartbeats excluded. A transaction counts when it commits,
 * because only then can other work see it.
 */
export class Changes {
  count = 0;
  /** The beginnings of the latest statements that changed rows, oldest first. */
  readonly latest: string[] = [];

  constructor({ pool, bulkPool }: Database) {
    for (const each of [pool, bulkPool]) {
      each.on('connect', (client) => this.watch(client));
      for (const client of Reflect.get(each, '_clients') as pg.PoolClient[]) this.watch(client);
    }
  }

  private watch(client: pg.PoolClient): void {
    let inTransaction = false;
    let uncommitted = 0;
    const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
    connection.on('commandComplete', ({ text: tag }: { text: string }) => {
      if (CHANGED_ROWS.test(tag)) {
        uncommitted += 1;
        this.remember(client, tag);
      }
      if (tag === 'ROLLBACK') uncommitted = 0;
      if (tag === 'BEGIN') inTransaction = true;
      if (tag === 'COMMIT' || tag === 'ROLLBACK') inTransaction = false;
      if (inTransaction) return;
      this.count += uncommitted;
      uncommitted = 0;
    });
  }

  private remember(client: pg.PoolClient, tag: string): void {
    const { text = tag } = (Reflect.get(client, '_activeQuery') ?? {}) as { text?: string };
    this.latest.push(text.replace(/\s+/g, ' ').slice(0, 120));
    if (this.latest.length > LISTED_STATEMENTS) this.latest.shift();
  }
}
