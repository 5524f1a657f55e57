import type { PersonResponse } from '../src/people/api/person-view.js';
import { type Stage, tell, title } from './stage.js';

/** Seconds that the EHR is willing to wait for the platform to have it. */
const WAIT = { wait: 60 };

/** A client gets another list of providers; a clinician waits for it, so it overtakes bulk work. */
export async function changeProviders({ ehr, platform, signal }: Stage): Promise<void> {
  const path = '/v1/clients/C-1002';
  const before = await ehr.get<PersonResponse>(path);
  const providers = ['P-104', 'P-112'];
  title(`The providers of C-1002 change from ${list(before.providers)} to ${list(providers)}.`);
  const begun = performance.now();
  await ehr.send('PUT', `${path}/providers`, { providers }, { ...WAIT, signal });
  const took = ((performance.now() - begun) / 1_000).toFixed(1);
  const after = await ehr.get<PersonResponse>(path);
  tell(`EHR       GET ${path}: ${after.sync.state} after ${took} s, providers ${list(after.providers)}`);
  const user = await platform.user(after.platformUserId);
  const names = new Map((await ehr.get<{ items: PersonResponse[] }>('/v1/providers')).items.map(byPlatformUser));
  tell(`platform  user ${user?.userId}: providers ${list(user?.providerUserIds.map((id) => names.get(id) ?? id))}`);
}

/** A client leaves. */
export async function deleteClient({ ehr, platform, signal }: Stage): Promise<void> {
  const path = '/v1/clients/C-1029';
  title('C-1029 is deleted.');
  const { platformUserId } = await ehr.get<PersonResponse>(path);
  await ehr.send('DELETE', path, undefined, { ...WAIT, signal });
  const after = await ehr.get<PersonResponse>(path);
  tell(`EHR       GET ${path}: ${after.sync.state}`);
  const [user, users] = await Promise.all([platform.user(platformUserId), platform.users()]);
  tell(`platform  user ${platformUserId}: ${user ? 'still there' : 'gone'}; ${users.length} users are left`);
}

function byPlatformUser(person: PersonResponse): [string | null, string] {
  return [person.platformUserId, person.externalId];
}

function list(ids: readonly string[] = []): string {
  return ids.join(', ');
}
