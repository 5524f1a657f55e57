import type pg from 'pg';

/** What each transaction that is in progress has collected, by its connection. */
const collected = new WeakMap<pg.PoolClient, Set<() => void>>();

/** Collects what must run once the transaction on this connection has committed. */
export function collect(sql: pg.PoolClient, run: () => void): void {
  collected.set(sql, (collected.get(sql) ?? new Set()).add(run));
}

/** Removes what the transaction has collected, which has ended. */
export function takeCollected(sql: pg.PoolClient): Iterable<() => void> {
  const runs = collected.get(sql) ?? [];
  collected.delete(sql);
  return runs;
}
