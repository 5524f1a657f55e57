import { allColumns } from '../../database/columns.js';
import type { SessionsQuery } from './sessions.dto.js';

/** SQL of the columns of sessions `t` without the request, which may be large. */
const COLUMNS = allColumns('Session', 't', 'request');

/** SQL of the columns of a document `d` with its newest revision `r`. */
export const DOCUMENT_COLUMNS = `d.id AS "documentId", d.session_document_id AS "sessionDocumentId",
  d.note_template_id AS "noteTemplateId", d.revision, d.incomplete, r.fetched_at AS "fetchedAt",
  d.superseded_at AS "supersededAt", r.removed_at AS "removedAt", r.notes`;

/** The documents of session $1 with their newest revisions. OFFSET 0 keeps the planner from reading all revisions. */
export const CURRENT_DOCUMENTS = `
  SELECT ${DOCUMENT_COLUMNS}
  FROM session_documents d CROSS JOIN LATERAL (
    SELECT * FROM document_revisions WHERE document = d.id AND revision = d.revision OFFSET 0) AS r
  WHERE d.session = $1::uuid ORDER BY d.superseded_at DESC NULLS FIRST, d.position, d.id`;

/** The filters of a list; people are identified by their platform users. */
interface ListFilter extends Pick<SessionsQuery, 'appointment' | 'state' | 'updatedSince' | 'order'> {
  providerUsers: string[] | undefined;
  clientUsers: string[] | undefined;
  /** The last row of the previous page. */
  after: readonly [updatedAt: string, id: string] | undefined;
  limit: number;
}

/** SQL of the rows of a page: a statement for each set of filters, so that the planner can use the best index for each. */
export function pageStatement(filter: ListFilter): { text: string; values: unknown[] } {
  const { providerUsers, clientUsers, appointment, state, updatedSince, after, limit } = filter;
  const [operator, direction] = filter.order === 'newest-first' ? ['<', 'DESC'] : ['>', 'ASC'];
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  // Filters that match few sessions are materialized first, so that the planner does not read all sessions in the order of the pages.
  const rare: string[] = [];
  // Without aliases: the condition of the index in the order of the pages.
  const conditions = [state === undefined ? "state <> 'Merged'" : `state = ${parameter(state)}`];
  if (clientUsers) {
    const users = `${parameter(clientUsers)}::text[]`;
    rare.push(`ever_client_user_ids && ${users} AND client_user_ids && ${users}`);
  }
  if (appointment !== undefined) rare.push(`partner_appointment_id = ${parameter(appointment)}`);
  if (providerUsers?.length === 1) conditions.push(`provider_user_id = ${parameter(providerUsers[0])}`);
  else if (providerUsers) conditions.push(`provider_user_id = ANY(${parameter(providerUsers)}::text[])`);
  if (updatedSince !== undefined) conditions.push(`updated_at >= ${parameter(updatedSince)}::timestamptz`);
  if (after)
    conditions.push(`(updated_at, id) ${operator} (${parameter(after[0])}::timestamptz, ${parameter(after[1])}::uuid)`);
  const found = `WITH found AS MATERIALIZED (SELECT * FROM sessions WHERE ${rare.join(' AND ')}) `;
  const text = `${rare.length > 0 ? found : ''}SELECT ${COLUMNS} FROM ${rare.length > 0 ? 'found' : 'sessions'} AS t
    WHERE ${conditions.join(' AND ')} ORDER BY updated_at ${direction}, id ${direction} LIMIT ${parameter(limit)}`;
  return { text, values };
}
