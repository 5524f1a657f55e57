/**
 * Whether a row `r` names one of a set of providers. The set is a parameter, looked up by a hash: as a part of the
 * statement the planner joins it anew for each row, or compares each row's list with it (`&&`), and takes minutes for
 * 100,000 clients.
 *
 * @param parameter the external ids, as `$2`
 */
export const namesOneOf = (parameter: string): string =>
  `EXISTS (SELECT 1 FROM unnest(r.providers) AS one(provider) WHERE one.provider = ANY (${parameter}::text[]))`;
