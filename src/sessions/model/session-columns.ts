import type { PoolClient } from 'pg';
import { allColumns, assignments, type Fields } from '../../database/columns.js';
import { prepared } from '../../database/database.js';
import { personOfUser } from '../../people/store/person-users.js';
import type { RequestTable } from '../../platform/send/request-rows.js';
import { LANES } from './session-row.js';

/** SQL of the columns of a session `t`. */
export const SESSION_COLUMNS = allColumns('Session', 't');

/** The table, as the EHR's requests are stored in it. */
export const SESSION_TABLE = {
  name: 'sessions',
  columns: SESSION_COLUMNS,
  lane: LANES.requests,
  platformId: 'session_id',
} as const satisfies RequestTable;

/** SQL of the external ids of the people of a session `t`. Each is looked up individually, regardless of the planner's estimates. */
export const SHOWN_PEOPLE = `${personOfUser('t.provider_user_id')} AS provider,
  ARRAY(SELECT person FROM (SELECT ${personOfUser('member.user_id')} AS person, place
      FROM unnest(t.client_user_ids) WITH ORDINALITY AS member (user_id, place)) AS found
    WHERE person IS NOT NULL ORDER BY place) AS clients`;

/** SQL of how the request of a session ended. */
export const ENDED_AS = `CASE WHEN abandoned THEN 'Abandoned' WHEN session_id IS NULL THEN 'Rejected' ELSE 'Settled' END`;

/** SQL condition: a session has the id $1, shown or that of its row, or the platform's id $2. */
export const IS_NAMED = '(id = $1 OR shown_id = $1 OR session_id = $2)';

/** Changes fields of a session. */
export async function updateSession(tx: PoolClient, id: string, fields: Partial<Fields<'Session'>>): Promise<void> {
  const { set, values } = assignments('Session', fields, 2);
  await tx.query(prepared(`UPDATE sessions SET ${set} WHERE id = $1`, [id, ...values]));
}
