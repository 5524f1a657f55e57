import { HELD_EMAILS, HELD_IDS, isNotIn } from '../../people/store/legal-hold.js';

/** SQL condition that a row `r` names a person only by its email: it was rejected without an id. */
export const IS_NAMED_BY_EMAIL = (emails: string): string =>
  `(r.external_id IS NULL AND r.email_fingerprint = ANY (${emails}::bytea[]))`;

/** SQL condition that a row belongs to no client under a legal hold, neither by its id nor by its email. */
export const IS_NO_HELD_ROW = (row: string): string =>
  `${isNotIn(`${row}.external_id`, HELD_IDS)} AND ${isNotIn(`${row}.email_fingerprint`, HELD_EMAILS)}`;

/** SQL condition: a row names a client that is here, under an id of its own: neither renamed nor merged since. */
export const IS_OWN_CHART = (row: string): string =>
  `(SELECT p.wanted FROM people p WHERE p.kind = 'client' AND p.external_id = ${row}.external_id)
    AND NOT EXISTS (SELECT FROM former_ids f WHERE f.kind = 'client' AND f.external_id = ${row}.external_id)`;
