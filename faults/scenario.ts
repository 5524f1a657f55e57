import type { Wanted, World } from './world.js';

/** Faults of one kind, with the work that must survive them. */
export interface Scenario {
  readonly name: string;
  /** The faults, in a few words. */
  readonly says: string;
  /** Minutes that the whole scenario takes on two cores. */
  readonly minutes: number;
  /** True if its faults are those of Redis. */
  readonly needsRedis?: boolean;
  /** True if it measures memory and answer times, so no other scenario may run at the same time. */
  readonly alone?: boolean;
  readonly wanted?: Wanted;
  /** Does the work, causes the faults, and checks the invariants. */
  run(world: World): Promise<void>;
}
