import type { World, WorldOptions } from '../../harness/world/world.js';
import { worldOf } from '../../harness/world/worlds.js';

/** To be called once in a file: the world of its tests, in which each begins with nobody and nothing on either side. */
export function useWorld(options: WorldOptions = {}): World {
  let world: World;
  beforeAll(async () => {
    world = await worldOf(options);
  });
  beforeEach(() => world.reset());
  return new Proxy({} as World, {
    get(_, name) {
      const value: unknown = Reflect.get(world, name);
      return typeof value === 'function' ? value.bind(world) : value;
    },
  });
}
