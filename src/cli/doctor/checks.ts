import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import type { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { checkDataFolder } from '../../database/data-folder.js';
import { withClient } from '../../database/database.js';
import {
  EmbeddedPostgresInUse,
  runningEmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../database/embedded-postgres.js';
import { missingMigrations } from '../../database/migrations.js';
import { commitFault, mayChangeTrail, OPEN_TRAIL } from '../../database/runtime-role.js';
import { calledAddresses } from '../../platform/contract/addresses.js';
import { capabilitiesOf } from '../../platform/contract/capabilities.js';
import { readContract } from '../../platform/contract/contract.js';
import { prepareQueueStore } from '../../queue/backend/backend.js';
import { parseDataKeys } from '../../vault/data-keys.js';
import { findWrappedKey } from '../../vault/read-vault.js';
import { FORMER_LAYOUT_LEFT, isFormerLayout, Vault } from '../../vault/vault.js';
import { FINGERPRINT_PLACE } from '../../vault/vault.module.js';
import { causeOf } from '../api/api.js';
import { byteSize } from '../output/print.js';

/** What one check came to; lines of advice say what to do. `unknown`: nothing is wrong for that alone. */
interface Finding {
  state: 'ok' | 'faulty' | 'unknown';
  what: string;
  advice: string[];
}

export const ok = (what: string, ...advice: string[]): Finding => ({ state: 'ok', what, advice });
const faulty = (what: string, ...advice: string[]): Finding => ({ state: 'faulty', what, advice });
const unknown = (what: string, ...advice: string[]): Finding => ({ state: 'unknown', what, advice });

/** Checks by their names, in the order in which they are made. */
export type Checks = Record<string, () => Promise<Finding> | Finding>;

const MARKS = { ok: '✓', faulty: '✗', unknown: '–' };

/** A finding as it is printed, its advice below it. */
export function findingLines(name: string, { state, what, advice }: Finding): string {
  return [`${MARKS[state]} ${name.padEnd(10)} ${what}`, ...advice.map((line) => `             ${line}`)].join('\n');
}

/** An error's message as a finding. */
export function faultOf(error: unknown): Finding {
  const [what = 'it failed without a reason', ...advice] = (error instanceof Error ? error.message : '').split('\n');
  return faulty(what, ...advice.map((line) => line.trim()));
}

/** Node below this can't load the packages (Nest 12). */
const OLDEST_NODE = [20, 19] as const;

/** Bytes; PostgreSQL stops committing when its disk is full. */
const LEAST_FREE_BYTES = 1024 ** 3;

/** Milliseconds that a server has to answer: one that is busy is not called ill. */
const TIMEOUT_MS = 15_000;

/** What stands before a setting of the contract file. */
const IN_CONTRACT = 'PLATFORM_CONTRACT: ';

const NEW_KEY = 'For a new database: echo "k1:$(openssl rand -base64 32)".';

/** The version and the disk of this machine. @param isUsed whether the embedded database keeps its data there */
export function machineChecks(dataDir: string, isUsed: boolean): Checks {
  return {
    Node: () => nodeFinding(process.versions.node),
    Disk: () => diskFinding(path.resolve(dataDir), isUsed),
  };
}

/** All that the settings name: nothing is changed. @param serviceUrl where the service should run @param starter of it */
export function allChecks(env: Env, serviceUrl: string, starter: string): Checks {
  const { DATABASE_URL: url, DATA_KEYS: keys } = env;
  return {
    ...machineChecks(env.DATA_DIR, !url),
    Database: () => (url ? databaseFinding(url) : embeddedFinding(env)),
    // The keys of the embedded database stand beside it.
    ...(url && { Keys: () => keysFinding(url, keys), Access: () => accessFinding(url, env.adminKey !== undefined) }),
    Queues: () => queueFinding(env),
    Contract: () => contractFinding(env),
    Addresses: () => addressesFinding(env),
    Platform: () => platformFinding(env.PLATFORM_BASE_URL),
    Service: () => serviceFinding(serviceUrl, starter),
  };
}

/** Whether a version of Node will do. */
export function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isGood = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
  if (isGood) return ok(`${version} on ${process.platform} ${process.arch}`);
  return faulty(`${version} is too old`, `Install Node ${OLDEST_NODE.join('.')} or later.`);
}

async function diskFinding(folder: string, isUsed: boolean): Promise<Finding> {
  if (isUsed) checkDataFolder(folder);
  let place = folder;
  while (!existsSync(place)) place = path.dirname(place);
  const { bavail, bsize } = await statfs(place);
  const what = `${byteSize(bavail * bsize)} free at ${place}`;
  if (bavail * bsize >= LEAST_FREE_BYTES) return ok(what);
  return faulty(what, 'Make room: a database whose disk is full takes no webhooks.');
}

async function embeddedFinding(env: Env): Promise<Finding> {
  const dataRoot = path.resolve(env.DATA_DIR);
  if (!existsSync(path.join(dataRoot, 'postgres'))) {
    return ok(`the embedded PostgreSQL will be made under ${env.DATA_DIR} at the first start`);
  }
  const embedded = await startEmbeddedPostgres({ dataRoot }).catch((error: unknown) => {
    if (error instanceof EmbeddedPostgresInUse) return undefined;
    throw error;
  });
  try {
    // That of a service that runs is joined.
    const finding = await (embedded
      ? databaseFinding(embedded.url, false)
      : databaseFinding(runningEmbeddedPostgres(dataRoot)));
    return { ...finding, what: `${finding.what}; the embedded one, in ${path.join(dataRoot, 'postgres')}` };
  } finally {
    await embedded?.release();
  }
}

/** @param isServing whether this is the role with which the service runs */
async function databaseFinding(url: string, isServing = true): Promise<Finding> {
  try {
    return await withClient(url, async (client) => {
      const fault = await commitFault(client);
      if (fault) return faulty(fault);
      const { rows } = await client.query<{ version: string }>(`SELECT current_setting('server_version') AS version`);
      const missing = await missingMigrations(client);
      const advice = missing.length > 0 ? ['They are applied when the service starts, or by migrate.'] : [];
      if (isServing && (await mayChangeTrail(client))) advice.push(OPEN_TRAIL);
      const wrapped = await findWrappedKey(client);
      if (wrapped && isFormerLayout(wrapped)) advice.push(FORMER_LAYOUT_LEFT);
      return ok(`PostgreSQL ${rows[0]?.version.split(' ')[0]}, ${missing.length} migrations to apply`, ...advice);
    });
  } catch (error) {
    const advice = 'Check DATABASE_URL, and that the server takes connections from here.';
    return faulty(`PostgreSQL can not be used (${causeOf(error)})`, advice);
  }
}

async function hasTable(client: pg.Client, name: string): Promise<boolean> {
  const text = 'SELECT to_regclass($1) IS NOT NULL AS "isThere"';
  return (await client.query<{ isThere: boolean }>(text, [name])).rows[0]?.isThere === true;
}

/**
 * Whether DATA_KEYS opens what no start does without: the key of the fingerprints, sealed at the first start.
 *
 * @throws {Error} the vault's, when it does not open
 */
async function keysFinding(url: string, keys: string[] | undefined): Promise<Finding> {
  if (!keys) return faulty('DATA_KEYS is not set', NEW_KEY);
  const sealed = await withClient(url, findWrappedKey).catch(() => 'unread' as const);
  if (sealed === 'unread') return unknown('not judged: the database can not be read');
  if (!sealed) return ok(`${keys.length} given; nothing is sealed yet`);
  const vault = new Vault(parseDataKeys(keys), Buffer.alloc(0), new Random(), { readsFormerLayout: true });
  vault.openBytes(FINGERPRINT_PLACE, sealed);
  return ok(`${keys.length} given; they open what was sealed at the first start`);
}

/** Whether the first key is taken still, beside those that were made. @param isOn whether ADMIN_API_KEY holds one */
async function accessFinding(url: string, isOn: boolean): Promise<Finding> {
  const made = await madeKeys(url).catch(() => undefined);
  if (!made) return unknown('not judged: the database can not be read');
  const { keys, admins } = made;
  const what = `${keys} API keys were made, ${admins} of them with the scope admin; ADMIN_API_KEY is`;
  if (!isOn && admins === 0) return faulty(`${what} off`, 'Nobody can make keys: set ADMIN_API_KEY once more.');
  if (!isOn) return ok(`${what} off`);
  if (keys === 0) return ok(`${what} taken`);
  const make = 'Make a key with the scope admin (npx notebridge keys create), then set ADMIN_API_KEY=off.';
  return unknown(`${what} still taken beside them`, admins === 0 ? make : 'Set ADMIN_API_KEY=off.');
}

/** The keys that are taken. */
async function madeKeys(url: string): Promise<{ keys: number; admins: number } | undefined> {
  return withClient(url, async (client) => {
    if (!(await hasTable(client, 'api_keys'))) return { keys: 0, admins: 0 };
    const { rows } = await client.query<{ keys: number; admins: number }>(
      `SELECT count(*)::int AS keys, count(*) FILTER (WHERE 'admin' = ANY (scopes))::int AS admins FROM api_keys
       WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())`,
    );
    return rows[0];
  });
}

async function queueFinding(env: Env): Promise<Finding> {
  if (!env.REDIS_URL) return ok('on PostgreSQL, since REDIS_URL is not set');
  const warning = await prepareQueueStore(env, '');
  return warning ? faulty(warning, 'Check REDIS_URL.') : ok('on Redis, which drops nothing (noeviction)');
}

function contractFinding(env: Env): Finding {
  const capabilities = capabilitiesOf(readContract(env.PLATFORM_CONTRACT), env);
  const off = capabilities.filter((capability) => !capability.on);
  const what = `${capabilities.length - off.length} of ${capabilities.length} capabilities are on`;
  const advice = off.map(
    ({ name, missing }) => `${name} is off, set ${missing.join(', ').replaceAll(IN_CONTRACT, '')}`,
  );
  if (advice.some((line) => line.includes('operations.') || line.includes('apiKey.'))) {
    advice.push('What begins with operations or apiKey belongs in the contract file, PLATFORM_CONTRACT.');
  }
  return (off.some(({ name }) => name === 'user-mirroring') ? faulty : ok)(what, ...advice);
}

/** Which addresses will be called, each whole: a wrong base URL is seen there at once. */
function addressesFinding(env: Env): Finding {
  const { addresses, warnings } = calledAddresses(readContract(env.PLATFORM_CONTRACT), env.PLATFORM_BASE_URL);
  const calls = addresses.map(({ operation, method, url }) => `${operation}: ${method} ${url}`);
  // Only the platform knows whether it really is so: a warning, and no fault.
  return (warnings.length > 0 ? unknown : ok)(`${addresses.length} operations can be called`, ...warnings, ...calls);
}

/** Any answer shows that the way is open; the address itself is no operation, so that no call of the limit is spent. */
async function platformFinding(baseUrl: string): Promise<Finding> {
  const begun = performance.now();
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { status } = await fetch(baseUrl, { method: 'HEAD', redirect: 'manual', signal });
    const took = Math.round(performance.now() - begun);
    return ok(`${baseUrl} answers in ${took} ms (${status}); the key was not sent`);
  } catch (error) {
    const advice = 'Check PLATFORM_BASE_URL, the name service, the firewall, and the certificate.';
    return faulty(`${baseUrl} does not answer (${causeOf(error)})`, advice);
  }
}

interface HealthAnswer {
  status: string;
  checks?: Record<string, { status: string; reason?: string }>;
}

async function serviceFinding(url: string, starter: string): Promise<Finding> {
  try {
    const answer = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const { status, checks = {} } = (await answer.json()) as HealthAnswer;
    const ailing = Object.entries(checks).filter(([, check]) => check.status !== 'ok');
    const advice = ailing.map(
      ([name, { status, reason }]) => `${name} is ${status}: ${reason ?? 'it does not say why'}`,
    );
    return (answer.ok ? ok : faulty)(`${url} is ${status}`, ...advice);
  } catch (error) {
    return unknown(`nothing answers at ${url} (${causeOf(error)}); ${starter} starts it`);
  }
}
