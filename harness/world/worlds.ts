import { World, type WorldOptions } from './world.js';

/** How many worlds stay open for later test files. */
const MAX_OPEN = 3;

/** Files date their data by the calendar, so they get no world that another file moved further ahead, in milliseconds. */
const MAX_AHEAD_MS = 30 * 86_400_000;

/** The open worlds by their options, the most recently used last. */
const open = new Map<string, World>();

/** The world with these options: the one that an earlier test file of this process opened, or a new one. */
export async function worldOf(options: WorldOptions): Promise<World> {
  const key = JSON.stringify(options, (_, value) => (value === undefined ? null : value));
  const known = open.get(key);
  const isUsable = known !== undefined && known.now().getTime() - Date.now() < MAX_AHEAD_MS;
  if (known && !isUsable) await known.close();
  const world = isUsable ? known : await World.start(setting('TEST_PG_URL'), setting('TEST_PG_WORLD'), options);
  open.delete(key);
  open.set(key, world);
  const [leastRecent] = open;
  if (leastRecent && open.size > MAX_OPEN) {
    open.delete(leastRecent[0]);
    await leastRecent[1].close();
  }
  return world;
}

/** Closes every open world. */
export async function closeWorlds(): Promise<void> {
  const worlds = [...open.values()];
  open.clear();
  for (const world of worlds) await world.close();
}

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set. Run this suite with npm test, which starts PostgreSQL.`);
  return value;
}
