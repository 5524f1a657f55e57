import { setImmediate } from 'node:timers/promises';
import type { PoolClient } from 'pg';

/** Keys and ids that are hashed before the event loop goes round: a few milliseconds. */
export const HASHES_AT_ONCE = 1_000;

/** The external ids of all wanted providers, current and former, some at a time. Rows that name former ones are rejected. */
export async function* knownProviders(tx: PoolClient, atOnce: number): AsyncGenerator<string[]> {
  for (let after = ''; ; ) {
    const { rows } = await tx.query<{ id: string }>(
      `(SELECT external_id AS id FROM people WHERE kind = 'provider' AND wanted AND external_id > $1
         ORDER BY external_id LIMIT $2)
       UNION (SELECT external_id FROM former_ids WHERE kind = 'provider' AND external_id > $1 ORDER BY external_id LIMIT $2)
       ORDER BY id LIMIT $2`,
      [after, atOnce],
    );
    yield rows.map(({ id }) => id);
    if (rows.length < atOnce) return;
    after = rows.at(-1)?.id ?? '';
    await setImmediate();
  }
}
