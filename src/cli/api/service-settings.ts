import { existsSync } from 'node:fs';
import type { Env } from '../../config/env.js';
import { readEnv, validateEnv } from '../../config/env.validation.js';
import { CliFault } from './cli-fault.js';
import { readClientEnv } from './client-env.js';
import { type DemoNote, readDemoNote } from './connection.js';

const elsewhere = (url: string) =>
  `This command reads the settings of the service. Those of the service at NOTEBRIDGE_URL (${url}) are not here. ` +
  "Run it where they are, or unset NOTEBRIDGE_URL to use this clone's demo.";

/**
 * Reads the service's own settings, for a command that does not use its API: the environment with .env, or this clone's
 * demo if nothing is set.
 *
 * @returns the settings, the demo that they belong to, and NOTEBRIDGE_URL
 * @throws {CliFault} if NOTEBRIDGE_URL names another service
 * @throws {Error} listing the missing settings, as the service does
 */
export function serviceSettings(): { env: Env; demo: DemoNote | undefined; url: string | undefined } {
  if (existsSync('.env')) process.loadEnvFile('.env');
  const { hasService, dataDir, url } = readClientEnv();
  const demo = hasService ? undefined : readDemoNote(dataDir);
  if (!hasService && url !== undefined && url !== demo?.url) throw new CliFault(elsewhere(url));
  return { env: demo ? validateEnv(demo.environment) : readEnv(), demo, url };
}
