import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Vault } from '../../vault/vault.js';
import { providerToken, TOKEN_MARK } from '../upload/provider-cells.js';
import { HASHES_AT_ONCE, knownProviders } from './known-providers.js';

/** A pending client `r` of the import $1. */
const PENDING_CLIENT = `r.import_id = $1 AND r.kind = 'client' AND r.outcome = 'pending'`;

/** Cells of the providers column that named nobody who was known when they were read (`ProviderCells`). */
@Injectable()
export class ProviderTokensRepository {
  constructor(private readonly vault: Vault) {}

  /** Puts external ids in the place of the tokens of providers who stand in the import, or were added since it was read. */
  async resolve(tx: PoolClient, importId: string): Promise<void> {
    const { rows } = await tx.query<{ token: string }>(
      `SELECT DISTINCT token FROM import_rows r CROSS JOIN unnest(r.providers) AS named(token)
       WHERE ${PENDING_CLIENT} AND starts_with(token, $2)`,
      [importId, TOKEN_MARK],
    );
    if (rows.length === 0) return;
    const tokens = new Set(rows.map(({ token }) => token));
    const found: Record<string, string> = {};
    for (const providers of [importedProviders(tx, importId), knownProviders(tx, HASHES_AT_ONCE)]) {
      for await (const ids of providers) {
        for (const id of ids) {
          const token = providerToken(this.vault, id);
          if (tokens.has(token)) found[token] = id;
        }
      }
    }
    if (Object.keys(found).length === 0) return;
    await tx.query(
      `UPDATE import_rows r SET providers = ARRAY(
         SELECT coalesce($2::jsonb ->> one, one) FROM unnest(r.providers) WITH ORDINALITY AS named(one, place) ORDER BY place)
       WHERE ${PENDING_CLIENT} AND $2::jsonb ?| r.providers`,
      [importId, JSON.stringify(found)],
    );
  }
}

/** The external ids of the providers of an import whom nothing rejected so far, some at a time. */
async function* importedProviders(tx: PoolClient, importId: string): AsyncGenerator<string[]> {
  for (let after = 0; ; ) {
    const { rows } = await tx.query<{ rowNo: number; id: string }>(
      `SELECT row_no AS "rowNo", external_id AS id FROM import_rows
       WHERE import_id = $1 AND kind = 'provider' AND outcome = 'pending' AND row_no > $2 ORDER BY row_no LIMIT $3`,
      [importId, after, HASHES_AT_ONCE],
    );
    yield rows.map(({ id }) => id);
    if (rows.length < HASHES_AT_ONCE) return;
    after = rows.at(-1)?.rowNo ?? 0;
    await setImmediate();
  }
}
