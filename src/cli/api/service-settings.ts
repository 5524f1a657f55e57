import { existsSync } from 'node:fs';
import type { ClientEnv } from '../../config/client-env.js';
import { type Env, readEnv, validateEnv } from '../../config/env.js';
import { type DemoNote, readDemoNote } from './connection.js';

/**
 * The service's own settings, for a command that looks behind its API: those of the environment and of .env; where there
 * are none, those of this clone's demo.
 *
 * @throws {Error} listing what is missing, as the service does
 */
export function serviceSettings(client: ClientEnv): { env: Env; demo: DemoNote | undefined } {
  const demo = client.hasService ? undefined : readDemoNote(client.dataDir);
  if (!demo) return { env: readEnv(), demo };
  // Its PostgreSQL is an embedded one, whose address holds only while the demo runs.
  return { env: validateEnv({ ...demo.environment, DATABASE_URL: undefined }), demo };
}

/** Adds what stands in .env, as the service does at its start. */
export function loadEnvFile(): void {
  if (existsSync('.env')) process.loadEnvFile('.env');
}
