import type { Pool } from 'pg';
import type { PersonKey } from '../model/profile.js';

/** SQL of the external id of the person that a platform user belongs or belonged to; null if none. */
export const personOfUser = (user: string): string => `coalesce(
    (SELECT p.external_id FROM people p WHERE p.platform_user_id = ${user}),
    (SELECT p.external_id FROM platform_users f JOIN people p ON p.id = f.person_id WHERE f.platform_user_id = ${user}))`;

const USERS_OF = `
  WITH person AS MATERIALIZED (
    SELECT id, platform_user_id FROM people WHERE kind = $1::person_kind AND external_id = $2)
  SELECT platform_user_id AS user FROM person WHERE platform_user_id IS NOT NULL
  UNION
  SELECT platform_user_id FROM platform_users WHERE person_id = (SELECT id FROM person)`;

/** All platform user ids that a person has or had. A person that was deleted and returned has several. */
export async function usersOf(sql: Pick<Pool, 'query'>, { kind, externalId }: PersonKey): Promise<string[]> {
  const { rows } = await sql.query<{ user: string }>(USERS_OF, [kind, externalId]);
  return rows.map(({ user }) => user);
}
