import { World, type WorldOptions } from './world.js';

/** Worlds that stay open for the next file of tests; beyond them the one that was used the longest ago is closed. */
const MOST = 3;

/** By what they were made with, the one used last at the end. */
const open = new Map<string, World>();

/** A world made so: one that an earlier file of this process used, or a new one. */
export async function worldOf(options: WorldOptions): Promise<World> {
  const name = JSON.stringify(options, (_, value) => (value === undefined ? null : value));
  const world = open.get(name) ?? (await World.start(setting('TEST_PG_URL'), setting('TEST_PG_WORLD'), options));
  open.delete(name);
  open.set(name, world);
  const [oldest] = open;
  if (oldest && open.size > MOST) {
    open.delete(oldest[0]);
    await oldest[1].close();
  }
  return world;
}

/** Closes what is open. */
export async function closeWorlds(): Promise<void> {
  const worlds = [...open.values()];
  open.clear();
  for (const world of worlds) await world.close();
}

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: this suite runs under the world project, which starts PostgreSQL.`);
  return value;
}
