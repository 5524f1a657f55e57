import type { Tx } from '../../database/prisma.service.js';
import type { PersonKey } from '../rules/profile.js';

/** SQL of a column of the person `p` that a platform user belongs or belonged to; null if none. */
const ofUser = (user: string, column: string): string => `coalesce(
    (SELECT ${column} FROM people p WHERE p.platform_user_id = ${user}),
    (SELECT ${column} FROM platform_users f JOIN people p ON p.id = f.person_id WHERE f.platform_user_id = ${user}))`;

/** SQL condition that a platform user belongs or belonged to a client that the EHR deleted, and that no legal hold keeps. */
export const isOfDeletedClient = (user: string): string =>
  ofUser(user, `p.kind = 'client' AND NOT p.wanted AND p.profile IS NULL AND p.held_at IS NULL`);

const PEOPLE_OF = `SELECT named.id AS user,
    ${ofUser('named.id', "json_build_object('kind', p.kind, 'externalId', p.external_id)")} AS person
  FROM unnest($1::text[]) AS named (id)`;

/** The people that platform users belong or belonged to, by user and with their current ids. */
export async function peopleOf(db: Tx, users: readonly string[]): Promise<Map<string, PersonKey>> {
  if (users.length === 0) return new Map();
  const rows = await db.$queryRawUnsafe<{ user: string; person: PersonKey | null }[]>(PEOPLE_OF, [...users]);
  return new Map(rows.flatMap(({ user, person }) => (person ? [[user, person] as const] : [])));
}

/** The external ids of the clients that platform users belong or belonged to. */
export async function clientsOf(db: Tx, users: readonly string[]): Promise<string[]> {
  const people = [...(await peopleOf(db, users)).values()];
  return people.filter(({ kind }) => kind === 'client').map(({ externalId }) => externalId);
}
