import { tlsFault } from '../../config/tls-fault.js';
import { tracesUrl } from '../../tracing/start-tracing.js';
import { causeOf } from '../api/api.js';
import { type Finding, faulty, ok, unknown } from './finding.js';

/** Milliseconds that a server has to answer: one that is busy is not called ill. */
const TIMEOUT_MS = 15_000;

const OF_PLATFORM = { setting: 'PLATFORM_BASE_URL', authority: 'in NODE_EXTRA_CA_CERTS=/path/ca.pem' };

/** Seconds; a Date header is exact to one, and an answer may take a while. */
const MOST_SKEW_SECONDS = 60;

/** How far a clock is from that of a server. @param date its Date header @returns undefined when they agree */
function skewFault(nowMs: number, date: string | null): string | undefined {
  const seconds = Math.round((nowMs - Date.parse(date ?? '')) / 1000);
  if (!(Math.abs(seconds) > MOST_SKEW_SECONDS)) return undefined;
  const side = seconds > 0 ? 'ahead of' : 'behind';
  return `the clock of this machine is ${Math.abs(seconds)} s ${side} the platform's`;
}

/** Any answer shows that the way is open; the address itself is no operation, so that no call of the limit is spent. */
export async function platformFinding(baseUrl: string): Promise<Finding> {
  const begun = performance.now();
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { status, headers } = await fetch(baseUrl, { method: 'HEAD', redirect: 'manual', signal });
    const took = Math.round(performance.now() - begun);
    const skew = skewFault(Date.now(), headers.get('date'));
    if (skew) return faulty(skew, 'Set the clock of this machine (NTP): signatures and certificates are judged by it.');
    return ok(`${baseUrl} answers in ${took} ms (${status}); the key was not sent`);
  } catch (error) {
    const tls = error instanceof Error ? tlsFault(error.cause, OF_PLATFORM) : undefined;
    if (tls) return faulty(`${baseUrl} can not be reached over TLS, for ${tls}`);
    const advice = 'Check PLATFORM_BASE_URL, the name service, the firewall, and the certificate.';
    return faulty(`${baseUrl} does not answer (${causeOf(error)})`, advice);
  }
}

interface HealthAnswer {
  status: string;
  checks?: Record<string, { status: string; reason?: string }>;
}

/** The health that a service tells; undefined when the answer is not one of ours. */
async function healthAt(url: string): Promise<HealthAnswer | undefined> {
  const answer = await fetch(`${url}/health/ready`, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
  const health = (await answer.json().catch(() => undefined)) as Partial<HealthAnswer> | null | undefined;
  return typeof health?.status === 'string' ? (health as HealthAnswer) : undefined;
}

/** Whether PUBLIC_URL leads to a notebridge; not every network lets its own machines in by the address of others. */
export async function publicFinding(url: string): Promise<Finding> {
  try {
    if (await healthAt(url.replace(/\/$/, ''))) return ok(`${url} leads to notebridge`);
    const advice = 'Correct PUBLIC_URL, or the proxy that stands there: its /health/ready has to lead here.';
    return faulty(`PUBLIC_URL ${url} leads to something else than notebridge`, advice);
  } catch (error) {
    return unknown(`PUBLIC_URL ${url} does not answer from here (${causeOf(error)})`, 'Check it from the outside.');
  }
}

/** An export without a span; any collector takes it. */
const NO_SPANS = { method: 'POST', body: '{"resourceSpans":[]}', headers: { 'content-type': 'application/json' } };

/** Whether a collector takes spans at OTEL_EXPORTER_OTLP_ENDPOINT. */
export async function collectorFinding(endpoint: string): Promise<Finding> {
  const url = tracesUrl(endpoint);
  const setting = 'OTEL_EXPORTER_OTLP_ENDPOINT';
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { status, ok: isTaken } = await fetch(url, { ...NO_SPANS, redirect: 'manual', signal });
    if (isTaken) return ok(`${url} takes spans`);
    if (status === 401 || status === 403) {
      const advice = 'It asks for OTEL_EXPORTER_OTLP_HEADERS, which were not sent from here.';
      return unknown(`${url} answers ${status}`, advice);
    }
    const advice = `Correct ${setting}: /v1/traces is appended to it, and a collector has to take OTLP over HTTP as JSON.`;
    return faulty(`${url} takes no spans (${status})`, advice);
  } catch (error) {
    const advice = `Check ${setting}: the port for HTTP is usually 4318, for 4317 takes gRPC. The service runs all the same.`;
    return faulty(`${url} does not answer (${causeOf(error)})`, advice);
  }
}

/** Nobody listens there, or the name leads nowhere. */
const NOBODY = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/;

const FREE_PORT =
  'End what holds the port, or set PORT to a free one; NOTEBRIDGE_URL says where a service is elsewhere.';

/** @param starter the command that starts the service */
export async function serviceFinding(url: string, starter: string): Promise<Finding> {
  try {
    const health = await healthAt(url);
    if (!health) return faulty(`another program than notebridge answers at ${url}`, FREE_PORT);
    const { status, checks = {} } = health;
    const ailing = Object.entries(checks).filter(([, check]) => check.status !== 'ok');
    const advice = ailing.map(
      ([name, { status, reason }]) => `${name} is ${status}: ${reason ?? 'it does not say why'}`,
    );
    return (status === 'ok' ? ok : faulty)(`${url} is ${status}`, ...advice);
  } catch (error) {
    const cause = causeOf(error);
    if (NOBODY.test(cause)) return unknown(`nothing answers at ${url} (${cause}); ${starter} starts it`);
    return faulty(`what listens at ${url} does not answer as notebridge does (${cause})`, FREE_PORT);
  }
}
