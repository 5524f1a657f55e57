import type { Env } from '../../config/env.js';
import { weakSecretWarnings } from '../../operations/start/weak-secrets.js';
import { calledAddresses } from '../../platform/contract/addresses.js';
import { capabilitiesOf } from '../../platform/contract/capabilities.js';
import type { Contract } from '../../platform/contract/contract.js';
import { readContract } from '../../platform/contract/contract-file.js';
import { prepareQueueStore } from '../../queue/backend/prepare-queue-store.js';
import { accessFinding, databaseFinding, keysFinding, ownerFinding } from './database-checks.js';
import { type Checks, type Finding, faulty, ok, unknown } from './finding.js';
import { nodeFinding } from './node-release.js';
import { platformFinding, publicFinding, serviceFinding } from './reach-checks.js';

/** Prefix of the settings in the contract file. */
const IN_CONTRACT = 'PLATFORM_CONTRACT: ';

/** Checks everything that the settings name, without changes. @param serviceUrl its address @param starter its start command */
export function allChecks(env: Env, serviceUrl: string, starter: string): Checks {
  const { DATABASE_URL: url, DATABASE_OWNER_URL: ownerUrl, PUBLIC_URL: publicUrl } = env;
  return {
    Node: () => nodeFinding(process.versions.node, new Date().toISOString()),
    Database: () => databaseFinding(url, ownerUrl),
    ...(ownerUrl && { Owner: () => ownerFinding(ownerUrl) }),
    Keys: () => keysFinding(url, env),
    Access: () => accessFinding(url, env.adminKey !== undefined),
    Queues: () => queueFinding(env),
    Secrets: () => secretsFinding(env),
    Contract: () => contractFinding(env),
    Addresses: () => addressesFinding(env),
    Platform: () => platformFinding(env),
    Service: () => serviceFinding(serviceUrl, starter),
    ...(publicUrl && { Public: () => publicFinding(publicUrl) }),
  };
}

async function queueFinding(env: Env): Promise<Finding> {
  if (!env.REDIS_URL) return ok('on PostgreSQL, because REDIS_URL is not set');
  const [warning] = await prepareQueueStore(env, '');
  return warning ? faulty(warning, 'Check REDIS_URL.') : ok('on Redis, which evicts nothing (noeviction)');
}

/** A warning and not a fault, because the platform chose them. */
function secretsFinding(env: Env): Finding {
  const [warning, ...more] = weakSecretWarnings(env);
  return warning === undefined ? ok('the secrets of the platform are strong') : unknown(warning, ...more);
}

function contractFinding(env: Env): Finding {
  const capabilities = capabilitiesOf(readContract(env.PLATFORM_CONTRACT), env);
  const off = capabilities.filter((capability) => !capability.on);
  const what = `${capabilities.length - off.length} of ${capabilities.length} capabilities are on`;
  const advice = off.map(
    ({ name, missing }) => `${name} is off, set ${missing.join(', ').replaceAll(IN_CONTRACT, '')}`,
  );
  if (advice.some((line) => line.includes('operations.') || line.includes('apiKey.'))) {
    advice.push('Settings that begin with operations or apiKey belong in the contract file, PLATFORM_CONTRACT.');
  }
  return (off.some(({ name }) => name === 'user-mirroring') ? faulty : ok)(what, ...advice);
}

/** Lists the complete addresses that will be called, because a wrong base URL is visible there. */
function addressesFinding(env: Env): Finding {
  let contract: Contract;
  try {
    contract = readContract(env.PLATFORM_CONTRACT);
  } catch {
    return unknown('not checked: the contract cannot be read');
  }
  const { addresses, warnings } = calledAddresses(contract, env.PLATFORM_BASE_URL);
  const calls = addresses.map(({ operation, method, url }) => `${operation}: ${method} ${url}`);
  // A warning and not a fault, because only the platform knows its addresses.
  return (warnings.length > 0 ? unknown : ok)(`${addresses.length} operations can be called`, ...warnings, ...calls);
}
