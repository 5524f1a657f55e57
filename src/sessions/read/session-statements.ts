import { allColumns } from '../../database/columns.js';
import { SHOWN_PEOPLE } from '../model/session-columns.js';
import type { SessionsQuery } from './sessions.dto.js';

/** SQL of the columns of sessions `t` without the request, which may be large, and the external ids of their people. */
export const WITH_PEOPLE = `${allColumns('Session', 't', 'request')}, ${SHOWN_PEOPLE}`;

/** SQL of the columns of a document `d` with its newest revision `r`. */
export const DOCUMENT_COLUMNS = `d.id AS "documentId", d.session_document_id AS "sessionDocumentId",
  d.note_template_id AS "noteTemplateId", d.revision, d.incomplete, r.fetched_at AS "fetchedAt",
  d.superseded_at AS "supersededAt", r.removed_at AS "removedAt", r.notes`;

/** The filters of a list; people are identified by their platform users. */
interface ListFilter extends Pick<SessionsQuery, 'appointment' | 'state' | 'updatedSince' | 'order'> {
  providerUsers: string[] | undefined;
  clientUsers: string[] | undefined;
  /** The last row of the previous page. */
  after: readonly [updatedAt: string, id: string] | undefined;
  limit: number;
}

/** Builds a statement for each set of filters, so that the planner can use the best index for each. */
export function listStatement(filter: ListFilter): { text: string; values: unknown[] } {
  const { providerUsers, clientUsers, appointment, state, updatedSince, after, limit } = filter;
  const [operator, direction] = filter.order === 'newest-first' ? ['<', 'DESC'] : ['>', 'ASC'];
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  // Filters that match few sessions are materialized first, so that the planner does not read all sessions in the order of the pages.
  const rare: string[] = [];
  const conditions: string[] = [];
  if (clientUsers) rare.push(`client_user_ids && ${parameter(clientUsers)}::text[]`);
  if (appointment !== undefined) rare.push(`partner_appointment_id = ${parameter(appointment)}`);
  if (providerUsers?.length === 1) conditions.push(`provider_user_id = ${parameter(providerUsers[0])}`);
  else if (providerUsers) conditions.push(`provider_user_id = ANY(${parameter(providerUsers)}::text[])`);
  if (state !== undefined) conditions.push(`state = ${parameter(state)}`);
  if (updatedSince !== undefined) conditions.push(`updated_at >= ${parameter(new Date(updatedSince))}`);
  if (after)
    conditions.push(`(updated_at, id) ${operator} (${parameter(after[0])}::timestamptz, ${parameter(after[1])}::uuid)`);
  const found = rare.length === 0 ? '' : `found AS MATERIALIZED (SELECT * FROM sessions WHERE ${rare.join(' AND ')}),`;
  const from = rare.length === 0 ? 'sessions' : 'found';
  const text = `
    WITH ${found}
    t AS (SELECT * FROM ${from} WHERE ${conditions.join(' AND ') || 'true'} ORDER BY updated_at ${direction}, id ${direction} LIMIT ${parameter(limit)})
    SELECT ${WITH_PEOPLE} FROM t ORDER BY t.updated_at ${direction}, t.id ${direction}`;
  return { text, values };
}
