import type { PoolClient } from 'pg';
import { canonicalId } from '../parse/row/validate-person.js';

/** The status of a row's provider. */
export type ProviderStatus = 'known' | 'renamed' | 'rejected' | 'unknown';

/** Ids that are remembered over all batches of an upload. */
const MAX_REMEMBERED = 50_000;

/** If an id has several, the last one counts: a row of the file may name a provider by its former id, too. */
const ORDER: ProviderStatus[] = ['unknown', 'rejected', 'known', 'renamed'];

/** Looks up the providers that the clients of an upload name. An id is the same in every Unicode form. */
export class KnownProviders {
  private readonly found = new Map<string, { status: ProviderStatus; spelling: string }>();

  constructor(
    private readonly tx: PoolClient,
    private readonly importId: string,
  ) {}

  /**
   * Looks up ids together. Providers of the same upload count once they are stored; those of another upload until they
   * were applied, and before its plan only if the plan will be applied automatically.
   */
  async lookUp(ids: Iterable<string>): Promise<void> {
    if (this.found.size > MAX_REMEMBERED) this.found.clear();
    const wanted = [...new Set(ids)].filter((id) => this.of(id) !== 'known');
    if (wanted.length === 0) return;
    const forms = new Set(wanted.flatMap((id) => [id, id.normalize('NFC'), id.normalize('NFD')]));
    const { rows } = await this.tx.query<{ id: string; status: ProviderStatus }>(
      `SELECT external_id AS id, 'known' AS status FROM people
         WHERE kind = 'provider' AND external_id = ANY ($2::text[]) AND wanted
       UNION ALL SELECT external_id, 'renamed' FROM former_ids WHERE kind = 'provider' AND external_id = ANY ($2::text[])
       UNION ALL SELECT external_id, CASE WHEN says = 'person' THEN 'known' ELSE 'rejected' END FROM import_rows
         WHERE external_id = ANY ($2::text[]) AND (profile IS NOT NULL OR cells IS NOT NULL)
           AND kind IS DISTINCT FROM 'client' AND (import_id = $1
             OR phase IS NOT NULL AND import_id IN (SELECT id FROM imports WHERE state IN ('running', 'paused'))
             OR import_id IN (SELECT id FROM imports WHERE state = 'staging' AND NOT dry_run AND mode = 'upsert'))`,
      [this.importId, [...forms]],
    );
    for (const id of wanted) this.found.set(canonicalId(id), { status: 'unknown', spelling: id });
    for (const { id, status } of rows) {
      if (ORDER.indexOf(status) > ORDER.indexOf(this.of(id))) this.found.set(canonicalId(id), { status, spelling: id });
    }
  }

  /** The status of an id that was looked up. */
  of(id: string): ProviderStatus {
    return this.found.get(canonicalId(id))?.status ?? 'unknown';
  }

  /** The form in which an id that was looked up is stored. */
  spelling(id: string): string {
    return this.found.get(canonicalId(id))?.spelling ?? id;
  }
}
