import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { begin, put, remove } = peopleOf(world);

async function countOf(kind: string, state: string): Promise<string | undefined> {
  const { text } = await world.call('GET', '/metrics');
  return new RegExp(`^notebridge_people\\{kind="${kind}",state="${state}"\\} (\\d+)$`, 'm').exec(text)?.[1];
}

test('the metrics count people by kind and state, and report 0 for a state without people', async () => {
  await put('providers/home');
  await begin('providers/new');
  expect([await countOf('provider', 'synced'), await countOf('provider', 'pending')]).toEqual(['1', '1']);
  await remove('providers/home');
  await world.advance('1 min'); // a count of many people is slow, so it is not repeated at each scrape
  expect([await countOf('provider', 'synced'), await countOf('provider', 'deleted')]).toEqual(['1', '1']);
  expect([await countOf('provider', 'pending'), await countOf('client', 'failed')]).toEqual(['0', '0']);
});
