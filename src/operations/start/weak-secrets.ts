import type { Env } from '../../config/env.js';
import { isStrongSecret, MIN_LENGTH } from '../../config/secret-strength.js';
import { isPlatformHere } from '../../config/urls.js';

/**
 * Warnings about short or repetitive secrets that the platform chose. They are no reason not to start, because only the
 * platform can replace them. Those of a platform on this machine, such as the simulator, protect nothing.
 */
export function weakSecretWarnings(
  env: Pick<Env, 'PLATFORM_BASE_URL' | 'PLATFORM_API_KEY' | 'PLATFORM_WEBHOOK_SECRET'>,
): string[] {
  const { PLATFORM_API_KEY: key, PLATFORM_WEBHOOK_SECRET: secrets } = env;
  if (isPlatformHere(env)) return [];
  return Object.entries({ PLATFORM_API_KEY: [key], PLATFORM_WEBHOOK_SECRET: secrets })
    .filter(([, values]) => !values.every(isStrongSecret))
    .map(([name]) => `${name} is short or repetitive. Ask the platform for at least ${MIN_LENGTH} random characters.`);
}
