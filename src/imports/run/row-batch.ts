import type { PoolClient, QueryResultRow } from 'pg';

/** The rows `r` of one batch: of the import $1 those with the numbers $2. */
export const IN_BATCH = 'r.import_id = $1 AND r.row_no = ANY ($2::int[])';

/**
 * Something of the person of a row `r`, by key. A scalar subquery is never turned round; a join may begin with all people
 * when the planner has no statistics of tables that were filled a moment ago.
 */
export const ofPerson = (value: string): string =>
  `(SELECT ${value} FROM people p WHERE p.kind = r.kind AND p.external_id = r.external_id)`;

/** Why a row is skipped. */
interface Skip {
  code: string;
  hint: string;
  field: string | null;
}

/** Rows of an import, and a statement about them: $1 and $2 are those of `IN_BATCH`. */
export class Batch {
  constructor(
    readonly tx: PoolClient,
    readonly importId: string,
    readonly rowNos: readonly number[],
  ) {}

  /** @param values from $3 on */
  async query<Row extends QueryResultRow>(sql: string, ...values: unknown[]): Promise<Row[]> {
    return (await this.tx.query<Row>(sql, [this.importId, this.rowNos, ...values])).rows;
  }

  /** Skips those pending rows `r` that are as a condition says. @param values of the condition, from $6 on */
  async skip({ code, hint, field }: Skip, condition: string, ...values: unknown[]): Promise<void> {
    await this.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = $3, hint = $4, field = $5
       WHERE ${IN_BATCH} AND r.outcome = 'pending' AND ${condition}`,
      code,
      hint,
      field,
      ...values,
    );
  }
}
