import { personOfUser } from '../../people/store/person-users.js';
import type { SessionsQuery } from './sessions.dto.js';

/** What is shown of sessions `s`; each person is looked up by itself, however few or many the planner expects. */
export const SHOWN = `s.*, ${personOfUser('s.provider_user_id')} AS provider,
  ARRAY(SELECT person FROM (SELECT ${personOfUser('taking_part.user_id')} AS person, place
      FROM unnest(s.client_user_ids) WITH ORDINALITY AS taking_part (user_id, place)) AS found
    WHERE person IS NOT NULL ORDER BY place) AS clients,
  CASE s.state WHEN 'Unknown' THEN (SELECT correlation_id FROM session_requests WHERE session = s.id) END
    AS correlation_id`;

/** What a list is narrowed to; people are given by their users of the platform. */
interface ListFilter extends Pick<SessionsQuery, 'appointment' | 'state' | 'updatedSince' | 'order'> {
  providerUsers: string[] | undefined;
  clientUsers: string[] | undefined;
  /** Where the page before ended. */
  after: readonly [updatedAt: string, id: string] | undefined;
  limit: number;
}

/** Each set of filters has a statement of its own, so that each is planned by the index that fits it. */
export function listStatement(filter: ListFilter): { text: string; values: unknown[] } {
  const { providerUsers, clientUsers, appointment, state, updatedSince, after, limit } = filter;
  const [isBehind, way] = filter.order === 'newest-first' ? ['<', 'DESC'] : ['>', 'ASC'];
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  // What is true of few sessions is found first: never by reading all of them in the order of the pages.
  const few: string[] = [];
  const conditions = ['true'];
  if (clientUsers) few.push(`client_user_ids && ${parameter(clientUsers)}::text[]`);
  if (appointment !== undefined) few.push(`partner_appointment_id = ${parameter(appointment)}`);
  if (providerUsers?.length === 1) conditions.push(`provider_user_id = ${parameter(providerUsers[0])}`);
  else if (providerUsers) conditions.push(`provider_user_id = ANY(${parameter(providerUsers)}::text[])`);
  if (state !== undefined) conditions.push(`state = ${parameter(state)}`);
  if (updatedSince !== undefined) conditions.push(`updated_at >= ${parameter(new Date(updatedSince))}`);
  if (after)
    conditions.push(`(updated_at, id) ${isBehind} (${parameter(after[0])}::timestamptz, ${parameter(after[1])}::uuid)`);
  const found = few.length === 0 ? '' : `found AS MATERIALIZED (SELECT * FROM sessions WHERE ${few.join(' AND ')}),`;
  const from = few.length === 0 ? 'sessions' : 'found';
  const text = `
    WITH ${found}
    s AS (SELECT * FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY updated_at ${way}, id ${way} LIMIT ${parameter(limit)})
    SELECT ${SHOWN} FROM s ORDER BY s.updated_at ${way}, s.id ${way}`;
  return { text, values };
}
