import type { PlatformPause } from '../../generated/prisma/client.js';

/** Whether calls of an API or of one of its operations pause: a row of `platform_pauses`. */
export type Pause = PlatformPause;
