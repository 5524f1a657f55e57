import type { Client } from 'pg';
import { ifReadable } from '../../vault/unreadable-value.js';
import type { Vault } from '../../vault/vault.js';
import { FORMER_FACTS_EMPTIED, SessionFactsSeal } from './session-facts.js';
import type { SessionRow } from './session-row.js';

/** Rows that are read at once. */
const BATCH = 100;

/** Sessions that were stored before there were facts: their plain columns are sealed, and bound to their owner. */
export class FormerSessions {
  private readonly facts: SessionFactsSeal;

  /** @param vault one that reads the former layout: else a row without facts is one whose facts were taken away */
  constructor(
    private readonly sql: Pick<Client, 'query'>,
    vault: Vault,
  ) {
    this.facts = new SessionFactsSeal(vault);
  }

  async count(): Promise<number> {
    const { rows } = await this.sql.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM sessions WHERE facts IS NULL',
    );
    return rows[0]?.count ?? 0;
  }

  /**
   * Seals what is left, in the order of the ids. Who stores something in a session seals its facts himself, so that a row
   * that changes meanwhile is left to him.
   *
   * @param onProgress called after each batch with the number of sessions
   * @param onUnreadable called with our id of a session whose error message does not open; it stays as it is
   */
  async seal(onProgress: (sealed: number) => void, onUnreadable: (id: string) => void): Promise<void> {
    for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
      const { rows } = await this.sql.query<SessionRow>(
        `SELECT * FROM sessions WHERE facts IS NULL AND id > $1 ORDER BY id LIMIT ${BATCH}`,
        [after],
      );
      for (const row of rows) {
        const facts = ifReadable(() => this.facts.open(row));
        if (!facts) onUnreadable(row.id);
        else await this.store(row, this.facts.seal(row.id, row, facts));
      }
      onProgress(rows.length);
      after = rows.at(-1)?.id ?? '';
      if (rows.length < BATCH) return;
    }
  }

  private async store(row: SessionRow, facts: Buffer): Promise<void> {
    await this.sql.query(
      `UPDATE sessions SET facts = $2, ${FORMER_FACTS_EMPTIED}
       WHERE id = $1 AND facts IS NULL
         AND (session_id, provider_user_id, client_user_ids) IS NOT DISTINCT FROM ($3, $4, $5::text[])`,
      [row.id, facts, row.session_id, row.provider_user_id, row.client_user_ids],
    );
  }
}
