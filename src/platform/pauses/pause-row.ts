import type { PlatformPause } from '../../generated/prisma/client.js';

/** Whether calls of an API or of one of its operations pause: a row of `platform_pauses`. */
export type Pause = PlatformPause;

/** The pauses of all APIs and of their operations, by their keys. */
export type Pauses = ReadonlyMap<string, Pause>;
