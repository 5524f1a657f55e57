import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import type { Env } from '../../config/env.js';
import { checkDataFolder } from '../../database/data-folder.js';
import { calledAddresses } from '../../platform/contract/addresses.js';
import { capabilitiesOf } from '../../platform/contract/capabilities.js';
import { type Contract, readContract } from '../../platform/contract/contract.js';
import { prepareQueueStore } from '../../queue/backend/backend.js';
import { byteSize } from '../output/print.js';
import { accessFinding, databaseFinding, embeddedFinding, keysFinding, ownerFinding } from './database-checks.js';
import { type Checks, type Finding, faulty, ok, unknown } from './finding.js';
import { collectorFinding, platformFinding, publicFinding, serviceFinding } from './reach-checks.js';

/** Node below this can't load the packages (Nest 12). */
const OLDEST_NODE = [20, 19] as const;

/** Bytes; PostgreSQL stops committing when its disk is full. */
const LEAST_FREE_BYTES = 1024 ** 3;

/** What stands before a setting of the contract file. */
const IN_CONTRACT = 'PLATFORM_CONTRACT: ';

/** The version and the disk of this machine. @param isUsed whether the embedded database keeps its data there */
export function machineChecks(dataDir: string, isUsed: boolean): Checks {
  return {
    Node: () => nodeFinding(process.versions.node),
    Disk: () => diskFinding(path.resolve(dataDir), isUsed),
  };
}

/** All that the settings name: nothing is changed. @param serviceUrl where the service should run @param starter of it */
export function allChecks(env: Env, serviceUrl: string, starter: string): Checks {
  const { DATABASE_URL: url, DATABASE_OWNER_URL: ownerUrl, PUBLIC_URL: publicUrl, DATA_KEYS: keys } = env;
  const { OTEL_EXPORTER_OTLP_ENDPOINT: collector } = env;
  return {
    ...machineChecks(env.DATA_DIR, !url),
    Database: () => (url ? databaseFinding(url, { ownerUrl }) : embeddedFinding(env)),
    ...(ownerUrl && { Owner: () => ownerFinding(ownerUrl) }),
    // The keys of the embedded database stand beside it.
    ...(url && { Keys: () => keysFinding(url, keys), Access: () => accessFinding(url, env.adminKey !== undefined) }),
    Queues: () => queueFinding(env),
    Contract: () => contractFinding(env),
    Addresses: () => addressesFinding(env),
    Platform: () => platformFinding(env.PLATFORM_BASE_URL),
    Service: () => serviceFinding(serviceUrl, starter),
    ...(publicUrl && { Public: () => publicFinding(publicUrl) }),
    ...(collector && { Traces: () => collectorFinding(collector) }),
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
  let contract: Contract;
  try {
    contract = readContract(env.PLATFORM_CONTRACT);
  } catch {
    return unknown('not judged: the contract can not be read');
  }
  const { addresses, warnings } = calledAddresses(contract, env.PLATFORM_BASE_URL);
  const calls = addresses.map(({ operation, method, url }) => `${operation}: ${method} ${url}`);
  // Only the platform knows whether it really is so: a warning, and no fault.
  return (warnings.length > 0 ? unknown : ok)(`${addresses.length} operations can be called`, ...warnings, ...calls);
}
