import type { Env } from '../../config/env.js';
import { calledAddresses, doubledWarnings } from '../../platform/contract/addresses.js';
import { capabilitiesOf } from '../../platform/contract/capabilities.js';
import { readContract } from '../../platform/contract/contract.js';
import { causeOf } from '../api/api.js';
import type { Checks, Finding } from './finding.js';

/** Milliseconds that a server has to answer: one that is busy is not called ill. */
const TIMEOUT_MS = 15_000;

/** What stands before a setting of the contract file. */
const IN_CONTRACT = 'PLATFORM_CONTRACT: ';

/** The contract file, the way to the platform, and the service itself. @param serviceUrl where it should run */
export function platformChecks(env: Env, serviceUrl: string): Checks {
  return {
    Contract: () => contractFinding(env),
    Addresses: () => addressesFinding(env),
    Platform: () => platformFinding(env.PLATFORM_BASE_URL),
    Service: () => serviceFinding(serviceUrl),
  };
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
  return { state: off.some(({ name }) => name === 'user-mirroring') ? 'faulty' : 'ok', what, advice };
}

/** Which addresses will be called, each whole: a wrong base URL is seen there at once. */
function addressesFinding(env: Env): Finding {
  const addresses = calledAddresses(readContract(env.PLATFORM_CONTRACT), env.PLATFORM_BASE_URL);
  const warnings = doubledWarnings(addresses);
  const calls = addresses.map(({ operation, method, url }) => `${operation}: ${method} ${url}`);
  // Only the platform knows whether it really is so: a warning, and no fault.
  const state = warnings.length > 0 ? 'unknown' : 'ok';
  return { state, what: `${addresses.length} operations can be called`, advice: [...warnings, ...calls] };
}

/** Any answer shows that the way is open; the address itself is no operation, so that no call of the limit is spent. */
async function platformFinding(baseUrl: string): Promise<Finding> {
  const begun = performance.now();
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { status } = await fetch(baseUrl, { method: 'HEAD', redirect: 'manual', signal });
    const took = Math.round(performance.now() - begun);
    return { state: 'ok', what: `${baseUrl} answers in ${took} ms (${status}); the key was not sent` };
  } catch (error) {
    const advice = ['Check PLATFORM_BASE_URL, the name service, the firewall, and the certificate.'];
    return { state: 'faulty', what: `${baseUrl} does not answer (${causeOf(error)})`, advice };
  }
}

interface HealthAnswer {
  status: string;
  checks?: Record<string, { status: string; reason?: string }>;
}

async function serviceFinding(url: string): Promise<Finding> {
  try {
    const answer = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const { status, checks = {} } = (await answer.json()) as HealthAnswer;
    const ailing = Object.entries(checks).filter(([, check]) => check.status !== 'ok');
    const advice = ailing.map(
      ([name, { status, reason }]) => `${name} is ${status}: ${reason ?? 'it does not say why'}`,
    );
    return { state: answer.ok ? 'ok' : 'faulty', what: `${url} is ${status}`, advice };
  } catch (error) {
    return { state: 'unknown', what: `nothing answers at ${url} (${causeOf(error)}); npm start starts it` };
  }
}
