/**
 * The numbers of an import's pending client rows that name one of a set of providers. A join finds them: to compare each
 * row's list with the set (`&&`) took minutes for 100,000 clients and thousands of providers.
 *
 * @param set a table or common table expression with `external_id`, each once
 * @param which a further condition on the row `r` of the import $1
 */
export const namingRows = (set: string, which: string): string => `
  SELECT r.row_no FROM import_rows r CROSS JOIN unnest(r.providers) AS one(provider) JOIN ${set} s ON s.external_id = one.provider
  WHERE r.import_id = $1 AND r.kind = 'client' AND r.outcome = 'pending' AND ${which}`;
