import type { Env } from '../../config/env.js';
import { tlsFault } from '../../errors/tls-fault.js';
import { Attempt, ProxyRefusal, waysOf } from '../../platform/http/connections.js';
import { proxyFor } from '../../platform/http/proxy.js';
import { causeOf } from '../api/api.js';
import { causeLines, type ServiceHealth } from '../output/causes.js';
import { type Finding, faulty, ok, unknown } from './finding.js';

/** Timeout for an answer; a busy server is not a fault. */
const TIMEOUT_MS = 15_000;

const OF_PLATFORM = { setting: 'PLATFORM_BASE_URL', authority: 'in NODE_EXTRA_CA_CERTS=/path/ca.pem' };

/** A Date header is exact to a second, and an answer may take several. */
const MAX_SKEW_SECONDS = 60;

/** Compares this machine's clock with a server's. @param date its Date header @returns undefined if they agree */
function skewFault(nowMs: number, date: string): string | undefined {
  const seconds = Math.round((nowMs - Date.parse(date)) / 1000);
  if (!(Math.abs(seconds) > MAX_SKEW_SECONDS)) return undefined;
  const side = seconds > 0 ? 'ahead of' : 'behind';
  return `the clock of this machine is ${Math.abs(seconds)} s ${side} the platform's`;
}

/**
 * Accepts any answer. The address itself is not an operation, so the request does not count towards the limit. It takes
 * the same route as calls.
 */
export async function platformFinding(env: Env): Promise<Finding> {
  const { PLATFORM_BASE_URL: baseUrl } = env;
  const proxy = proxyFor(new URL(baseUrl), env);
  const way = proxy ? ` through the proxy ${proxy.host}` : '';
  const begun = performance.now();
  try {
    const attempt = new Attempt(waysOf(env), AbortSignal.timeout(TIMEOUT_MS));
    const { status, headers } = await attempt.send({ url: baseUrl, method: 'HEAD' });
    const took = Math.round(performance.now() - begun);
    const skew = skewFault(Date.now(), String(headers.date ?? ''));
    if (skew)
      return faulty(skew, 'Set the clock of this machine (NTP): checks of signatures and certificates depend on it.');
    return ok(`${baseUrl} answers in ${took} ms (${status})${way}; the key was not sent`);
  } catch (error) {
    if (error instanceof ProxyRefusal)
      return faulty(`the proxy ${proxy?.host} in HTTPS_PROXY answers ${error.status} to CONNECT`, PROXY_REFUSES);
    const tls = tlsFault(error, OF_PLATFORM);
    if (tls) return faulty(`${baseUrl} cannot be reached over TLS${way}, because ${tls}`);
    const advice = `Check PLATFORM_BASE_URL, ${proxy ? 'HTTPS_PROXY, ' : ''}DNS, the firewall, and the certificate.`;
    return faulty(`${baseUrl} does not answer${way} (${causeOf(error)})`, advice);
  }
}

const PROXY_REFUSES =
  'Correct user and password in HTTPS_PROXY, allow this host in the proxy, or list the host in NO_PROXY.';

/** Reads a service's health. @returns undefined if another program answers */
async function healthAt(url: string): Promise<ServiceHealth | undefined> {
  const answer = await fetch(`${url}/health/ready`, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
  const health = (await answer.json().catch(() => undefined)) as Partial<ServiceHealth> | null | undefined;
  return typeof health?.status === 'string' ? ({ causes: [], checks: {}, ...health } as ServiceHealth) : undefined;
}

/** Checks that PUBLIC_URL leads to notebridge. No answer is not a fault, because some networks only allow outside access. */
export async function publicFinding(url: string): Promise<Finding> {
  try {
    if (await healthAt(url.replace(/\/$/, ''))) return ok(`${url} leads to notebridge`);
    const advice = 'Correct PUBLIC_URL, or the proxy at this address: its /health/ready must lead here.';
    return faulty(`PUBLIC_URL ${url} leads to a program other than notebridge`, advice);
  } catch (error) {
    return unknown(`PUBLIC_URL ${url} does not answer from here (${causeOf(error)})`, 'Check it from outside.');
  }
}

/** Codes of an address where no program listens, and of a name that does not resolve. */
const NOT_LISTENING = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/;

const FREE_PORT =
  'Stop the program that uses the port, or set PORT to a free one. For a service elsewhere, set NOTEBRIDGE_URL.';

/** @param starter the command that starts the service */
export async function serviceFinding(url: string, starter: string): Promise<Finding> {
  try {
    const health = await healthAt(url);
    if (!health) return faulty(`a program other than notebridge answers at ${url}`, FREE_PORT);
    const { status, causes } = health;
    // A pending decision is not a fault of the installation.
    const finding = causes.every(({ part }) => part === 'decisions') ? unknown : faulty;
    return (status === 'ok' ? ok : finding)(`${url} is ${status}`, ...causeLines(health).flat());
  } catch (error) {
    const cause = causeOf(error);
    if (NOT_LISTENING.test(cause)) return unknown(`nothing answers at ${url} (${cause}); ${starter} starts it`);
    return faulty(`the program at ${url} is not notebridge (${cause})`, FREE_PORT);
  }
}
