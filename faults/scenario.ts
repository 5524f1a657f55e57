import type { Wanted, World } from './world.js';

/** One way in which things go wrong, with the work that must survive it. */
export interface Scenario {
  readonly name: string;
  /** What goes wrong, in a few words. */
  readonly says: string;
  /** Minutes that the whole of it takes on two cores. */
  readonly minutes: number;
  /** Its faults are those of Redis. */
  readonly needsRedis?: boolean;
  /** It measures memory and answer times, which another scenario next to it would change. */
  readonly alone?: boolean;
  readonly wanted?: Wanted;
  /** Does the work and the faults, and asks the world's oracle about them. */
  run(world: World): Promise<void>;
}
