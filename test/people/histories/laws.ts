import type { World } from '../../../harness/world/world.js';
import { type History, KEYS } from './history.js';

/** How long a call may still arrive after another one was answered 429: it was on its way. */
const ON_ITS_WAY_MS = 1_000;

/** Checks what must be true at the end of a history. @returns what is not */
export async function faultsOf(world: World, history: History): Promise<string[]> {
  const faults = history.doubled.map((key) => `${key} had two platform users`);
  for (const key of KEYS) {
    const said = history.said.get(key);
    if (said === undefined) continue;
    const { status, body } = await world.call('GET', `/v1/${key}`);
    if (status !== 200) faults.push(`${key} is answered ${status}`);
    else {
      const { state, error } = body.sync;
      const isDecision = state === 'needs-review' || state === 'failed';
      const isLast = state === (said ? 'synced' : 'deleted');
      if (!isDecision && !isLast)
        faults.push(`${key} is ${state} (${error?.code ?? 'no code'}), said: ${said !== null}`);
      const [, id = ''] = key.split('/');
      const [user] = world.platform.usersOf(id);
      if (state === 'deleted' && user) faults.push(`${key} is deleted here and not on the platform`);
      if (state === 'synced' && !user) faults.push(`${key} is synced and not on the platform`);
      if (state === 'synced' && user && said && key.startsWith('clients')) {
        const wanted = said.providers.map((provider) => world.platform.usersOf(provider)[0]?.userId);
        if (wanted.join() !== user.providerUserIds.join()) faults.push(`${key} has other providers on the platform`);
      }
      if (isDecision && (await choicesOf(world, key)).length === 0) faults.push(`${key} is ${state} without a way out`);
    }
  }
  return [...faults, ...lateCalls(world)];
}

async function choicesOf(world: World, key: string): Promise<string[]> {
  const [kind = '', externalId] = key.split('/');
  const body = { externalId, kind: kind.slice(0, -1) };
  const answer = await world.call<{ choices: { action: string }[] }>('POST', '/v1/people/trace', { body });
  return answer.body.choices.map(({ action }) => action);
}

/** Calls that arrived while everyone had to wait after a 429. */
function lateCalls(world: World): string[] {
  const arrivals = world.platform.simulator.state.arrivals.list().filter(({ limited }) => limited);
  return arrivals
    .filter(({ status }) => status === 429)
    .flatMap(({ at }) => {
      const inPause = arrivals.filter((other) => other.at > at + ON_ITS_WAY_MS && other.at < at + 5_000);
      return inPause.map((other) => `${other.operation} arrived ${other.at - at} ms after a 429`);
    });
}
