import { personOfUser } from '../../people/store/person-users.js';

/**
 * SQL of the id under which a session `s` is shown: that of its request, if an event had stored the session in another
 * row first.
 */
export const SHOWN_ID = 'coalesce((SELECT requested.id FROM sessions requested WHERE requested.same_as = s.id), s.id)';

/** SQL of the external ids of the people of a session `s`. Each is looked up individually, regardless of the planner's estimates. */
export const SHOWN_PEOPLE = `${personOfUser('s.provider_user_id')} AS provider,
  ARRAY(SELECT person FROM (SELECT ${personOfUser('member.user_id')} AS person, place
      FROM unnest(s.client_user_ids) WITH ORDINALITY AS member (user_id, place)) AS found
    WHERE person IS NOT NULL ORDER BY place) AS clients`;

/** SQL condition: a session `s` has the id $1, ours or that of its request, or the platform's id $2. */
export const IS_NAMED = `(s.id = coalesce((SELECT same_as FROM sessions WHERE id = $1), $1) OR s.session_id = $2)`;
