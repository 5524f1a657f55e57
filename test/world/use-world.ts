import type { World, WorldOptions } from '../../harness/world/world.js';
import { worldOf } from '../../harness/world/worlds.js';

/** The world of a test file. Each test starts with an empty database and platform. Call it once per file. */
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
