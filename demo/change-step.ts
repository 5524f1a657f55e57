import type { Schemas } from '../client/methods.js';
import { type Stage, tell, title } from './stage.js';

/** How long the EHR waits until the platform has a change, in seconds. */
const HEADERS = { prefer: 'wait=60' };

/** Changes the providers of a client. A clinician waits for it, so it overtakes bulk work. */
export async function changeProviders({ ehr, platform, signal }: Stage): Promise<void> {
  const params = { path: { externalId: 'C-1002' } };
  const { data: before } = await ehr.GET('/v1/clients/{externalId}', { params });
  const providers = ['P-104', 'P-112'];
  title(`The providers of C-1002 change from ${list(before.providers)} to ${list(providers)}.`);
  const begun = performance.now();
  await ehr.PUT('/v1/clients/{externalId}/providers', { params, body: { providers }, headers: HEADERS, signal });
  const took = ((performance.now() - begun) / 1_000).toFixed(1);
  const { data: after } = await ehr.GET('/v1/clients/{externalId}', { params });
  tell(`EHR       GET /v1/clients/C-1002: ${after.sync.state} after ${took} s, providers ${list(after.providers)}`);
  const user = await platform.user(after.platformUserId);
  const names = new Map((await ehr.GET('/v1/providers')).data.items.map(byPlatformUser));
  tell(`platform  user ${user?.userId}: providers ${list(user?.providerUserIds.map((id) => names.get(id) ?? id))}`);
}

/** Deletes a client. */
export async function deleteClient({ ehr, platform, signal }: Stage): Promise<void> {
  const params = { path: { externalId: 'C-1029' } };
  title('C-1029 is deleted.');
  const { platformUserId } = (await ehr.GET('/v1/clients/{externalId}', { params })).data;
  await ehr.DELETE('/v1/clients/{externalId}', { params, headers: HEADERS, signal });
  const { data: after } = await ehr.GET('/v1/clients/{externalId}', { params });
  tell(`EHR       GET /v1/clients/C-1029: ${after.sync.state}`);
  const [user, users] = await Promise.all([platform.user(platformUserId), platform.users()]);
  tell(`platform  user ${platformUserId}: ${user ? 'still there' : 'gone'}; ${users.length} users left`);
}

function byPlatformUser(person: Schemas['PersonResponse']): [string | null, string] {
  return [person.platformUserId, person.externalId];
}

function list(ids: readonly string[] = []): string {
  return ids.join(', ');
}
