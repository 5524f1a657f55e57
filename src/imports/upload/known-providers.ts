import type { PoolClient } from 'pg';

/** What a row's provider is. */
export type ProviderStatus = 'known' | 'renamed' | 'rejected' | 'unknown';

/** Ids that are remembered over all batches of an upload. */
const MAX_REMEMBERED = 50_000;

/** Looks up the providers that the clients of an upload name. */
export class KnownProviders {
  private readonly statuses = new Map<string, ProviderStatus>();

  constructor(
    private readonly tx: PoolClient,
    private readonly importId: string,
  ) {}

  /** Looks up ids together. Providers of the same upload count once they are stored. */
  async lookUp(ids: Iterable<string>): Promise<void> {
    if (this.statuses.size > MAX_REMEMBERED) this.statuses.clear();
    const wanted = [...new Set(ids)].filter((id) => this.statuses.get(id) !== 'known');
    if (wanted.length === 0) return;
    const { rows } = await this.tx.query<{ id: string; status: ProviderStatus }>(
      `SELECT external_id AS id, 'known' AS status FROM people
         WHERE kind = 'provider' AND external_id = ANY ($2::text[]) AND wanted
       UNION ALL SELECT external_id, 'renamed' FROM former_ids WHERE kind = 'provider' AND external_id = ANY ($2::text[])
       UNION ALL SELECT external_id, CASE WHEN says = 'person' THEN 'known' ELSE 'rejected' END FROM import_rows
         WHERE external_id = ANY ($2::text[]) AND (profile IS NOT NULL OR cells IS NOT NULL)
           AND kind IS DISTINCT FROM 'client' AND (import_id = $1
             OR phase IS NOT NULL AND import_id IN (SELECT id FROM imports WHERE state IN ('running', 'paused')))`,
      [this.importId, wanted],
    );
    for (const id of wanted) this.statuses.set(id, 'unknown');
    // A row of the file may name the provider by its former id, too.
    const order: ProviderStatus[] = ['unknown', 'rejected', 'known', 'renamed'];
    for (const { id, status } of rows) {
      if (order.indexOf(status) > order.indexOf(this.of(id))) this.statuses.set(id, status);
    }
  }

  /** The status of an id that was looked up. */
  of(id: string): ProviderStatus {
    return this.statuses.get(id) ?? 'unknown';
  }
}
