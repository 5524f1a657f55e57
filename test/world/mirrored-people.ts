import type { World } from '../../harness/world/world.js';

export const SOAP = '11111111-1111-4111-8111-111111111111';
export const DAP = '22222222-2222-4222-8222-222222222222';

/** Mirrored people without a history: providers p-1 and p-2, and c-1, a client of p-1. Client c-2 is not mirrored yet. */
export async function mirroredPeople(world: World): Promise<{ provider: string; other: string; client: string }> {
  const { users } = world.platform.simulator.state;
  const newProvider = (firstName: string) =>
    users.add({
      role: 'HealthcareProvider',
      email: `${firstName.toLowerCase()}@example.test`,
      firstName,
      lastName: 'Byron',
      providerUserIds: [],
    }).userId;
  const [provider, other] = [newProvider('Ada'), newProvider('Bo')];
  const client = users.add({ role: 'Client', firstName: 'Cy', lastName: 'Lee', providerUserIds: [provider] }).userId;
  await world.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state, step) VALUES
       (gen_random_uuid(), 'provider', 'p-1', '', NULL, $1, 'synced', NULL),
       (gen_random_uuid(), 'provider', 'p-2', '', NULL, $2, 'synced', NULL),
       (gen_random_uuid(), 'client', 'c-1', '', NULL, $3, 'synced', NULL),
       (gen_random_uuid(), 'client', 'c-2', '', NULL, NULL, 'waiting', NULL)`,
    [provider, other, client],
  );
  await world.sql(
    `INSERT INTO client_providers (client_id, position, provider_id)
     SELECT c.id, 0, p.id FROM people c, people p WHERE c.kind = 'client' AND p.external_id = 'p-1'`,
  );
  return { provider, other, client };
}

/** Mirrors a user of the platform as this provider. */
export async function mirrorUser(world: World, externalId: string, userId: string): Promise<void> {
  await world.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state, step)
     VALUES (gen_random_uuid(), 'provider', $1, '', NULL, $2, 'synced', NULL)`,
    [externalId, userId],
  );
}
