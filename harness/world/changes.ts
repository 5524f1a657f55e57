import type pg from 'pg';
import type { Database } from '../../src/database/database.js';

/** What PostgreSQL says of a statement that changed rows. */
const CHANGED = /^(INSERT|UPDATE|DELETE|MERGE|COPY)\b.* [1-9]\d*$/;

/** Statements that are remembered, for whoever asks why a world never rests. */
const REMEMBERED = 30;

/** Counts what the service changed, its heartbeat apart: a transaction counts with its commit, when others see it. */
export class Changes {
  count = 0;
  /** The first words of the newest statements. */
  readonly last: string[] = [];

  constructor({ pool, bulkPool }: Database) {
    for (const each of [pool, bulkPool]) {
      each.on('connect', (client) => this.follow(client));
      for (const client of Reflect.get(each, '_clients') as pg.PoolClient[]) this.follow(client);
    }
  }

  private follow(client: pg.PoolClient): void {
    let isOpen = false;
    let changed = 0;
    const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
    connection.on('commandComplete', ({ text }: { text: string }) => {
      if (CHANGED.test(text)) {
        changed += 1;
        this.remember(client, text);
      }
      if (text === 'ROLLBACK') changed = 0;
      if (text === 'BEGIN') isOpen = true;
      if (text === 'COMMIT' || text === 'ROLLBACK') isOpen = false;
      if (isOpen) return;
      this.count += changed;
      changed = 0;
    });
  }

  private remember(client: pg.PoolClient, tag: string): void {
    const { text = tag } = (Reflect.get(client, '_activeQuery') ?? {}) as { text?: string };
    this.last.push(text.replace(/\s+/g, ' ').slice(0, 120));
    if (this.last.length > REMEMBERED) this.last.shift();
  }
}
