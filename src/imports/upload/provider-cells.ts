import type { PoolClient } from 'pg';
import type { Vault } from '../../vault/vault.js';

/** Cells whose stored form is remembered, over all batches of an upload. */
const MOST_REMEMBERED = 50_000;

/** Begins what stands for a cell that is no provider's external id, for no external id begins with a blank. */
export const TOKEN_MARK = ' ';

/** What stands for a cell that may be a person's name: equal cells have equal tokens. */
export function providerToken(vault: Vault, cell: string): string {
  return TOKEN_MARK + vault.fingerprint('provider', cell).toString('base64');
}

/**
 * How the cells of an upload's providers column are stored: the external id of a provider who is known already as it is,
 * everything else as a token, of which the plan makes the external id of a provider who came later.
 */
export class ProviderCells {
  private readonly stored = new Map<string, string>();

  /** @param defaultProvider stands in the clear with the import itself */
  constructor(
    private readonly vault: Vault,
    private readonly defaultProvider?: string,
  ) {}

  /** Takes note of a provider whom the upload itself brings. */
  brings(externalId: string): void {
    if (this.stored.size < MOST_REMEMBERED) this.stored.set(externalId, externalId);
  }

  /** Whether any of some cells has to be looked up. */
  lacks(cells: ReadonlySet<string>): boolean {
    for (const cell of cells) if (!this.stored.has(cell)) return true;
    return false;
  }

  /** Looks up all cells of a batch. */
  async lookUp(tx: PoolClient, cells: ReadonlySet<string>): Promise<void> {
    if (this.stored.size > MOST_REMEMBERED) this.stored.clear();
    const unknown = [...cells].filter((cell) => !this.stored.has(cell));
    const { rows } = await tx.query<{ externalId: string }>(
      `SELECT external_id AS "externalId" FROM people WHERE kind = 'provider' AND external_id = ANY ($1::text[])
       UNION SELECT external_id FROM former_ids WHERE kind = 'provider' AND external_id = ANY ($1::text[])`,
      [unknown],
    );
    const known = new Set(rows.map(({ externalId }) => externalId));
    for (const cell of unknown) this.stored.set(cell, known.has(cell) ? cell : providerToken(this.vault, cell));
  }

  /** A row's list as an array literal: ids and tokens hold no characters that JSON escapes but the two that it escapes likewise. */
  listLiteral(providers: readonly string[] | null): string | null {
    return providers && `{${JSON.stringify(providers.map((cell) => this.storedAs(cell))).slice(1, -1)}}`;
  }

  private storedAs(cell: string): string {
    return cell === this.defaultProvider ? cell : (this.stored.get(cell) ?? providerToken(this.vault, cell));
  }
}
