import { LOCKS } from '../../database/advisory-locks.js';
import { OPEN_IMPORT_STATES } from '../../people/store/deleted-ids.repository.js';

/** SQL condition: import `o` may still change people. */
export const IS_OPEN = `o.state IN (${OPEN_IMPORT_STATES.map((state) => `'${state}'`).join(', ')})`;

/**
 * SQL condition: no earlier import than $1 may still change people, and no other upload is open, so that a row that says what
 * is known needs no content: it is never applied.
 */
export const IS_ALONE = `(NOT EXISTS (SELECT FROM imports o WHERE o.opened_at < (SELECT opened_at FROM imports WHERE id = $1)
    AND ${IS_OPEN})
  AND NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = ${LOCKS.openUploads} AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())))`;
