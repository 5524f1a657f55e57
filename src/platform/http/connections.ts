import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import {
  Agent as HttpsAgent,
  type AgentOptions as HttpsAgentOptions,
  request as httpsRequest,
  type RequestOptions,
} from 'node:https';
import { connect, type LookupFunction, Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import axios, { type AxiosProxyConfig, type AxiosRequestConfig, type AxiosResponse } from 'axios';
import type { Clock } from '../../config/clock.js';
import { codeOf } from '../../errors/error-code.js';
import { PlatformError } from '../contract/platform-errors.js';
import { type ProxySettings, proxyFor } from './proxy.js';

/** The TCP connection under each TLS connection, because only TCP can be reset. */
const under = new WeakMap<Duplex, Socket>();

/** Remembers the TCP connections under its own. */
class ResettableHttpsAgent extends HttpsAgent {
  override createConnection(...[options, callback]: Parameters<HttpsAgent['createConnection']>) {
    const socket = connect(options as Parameters<typeof connect>[0]);
    const secure = super.createConnection({ ...options, socket } as HttpsAgentOptions, callback);
    if (secure) under.set(secure, socket);
    // The TLS connection reports the same errors to its owner.
    socket.on('error', () => undefined);
    return secure;
  }
}

/** Overrides NODE_TLS_REJECT_UNAUTHORIZED and --tls-min-v1.0, because clinical notes use these connections. */
const STRICT_TLS = { rejectUnauthorized: true, minVersion: 'TLSv1.2' } as const;

/** The ways to hosts: direct connections of two agents, or the proxy. */
export interface Ways {
  httpAgent: HttpAgent;
  httpsAgent: HttpsAgent;
  proxies: ProxySettings;
}

/** @param options of the agents; `lookup` refuses addresses */
export function waysOf(proxies: ProxySettings, options: HttpsAgentOptions & { lookup?: LookupFunction } = {}): Ways {
  const httpsAgent = new ResettableHttpsAgent({ ...STRICT_TLS, ...options });
  return { httpAgent: new HttpAgent(options), httpsAgent, proxies };
}

/** Thrown if a proxy opens no tunnel. Then nothing was sent to the host behind it. */
export class ProxyRefusal extends Error {
  readonly code: string;

  constructor(readonly status: number) {
    super(`The proxy in HTTPS_PROXY answered ${status} to CONNECT.`);
    this.code = `${status} to CONNECT`;
  }
}

/** One attempt of a request, perhaps over a kept connection. */
export class Attempt {
  /** True once a byte may have been sent: Node sends none before TCP and, for https, TLS with the certificate's check. */
  isReady = false;
  isProxied = false;
  #request: ClientRequest | undefined;

  constructor(
    private readonly ways: Ways,
    private readonly signal: AbortSignal,
  ) {}

  /** Sends a request with axios. @returns the answer with its head, whatever its status, and a stream of its body */
  async send(config: AxiosRequestConfig & { url: string }): Promise<AxiosResponse<Readable>> {
    const { httpAgent, httpsAgent, proxies } = this.ways;
    const target = new URL(config.url);
    const proxy = proxyFor(target, proxies);
    this.isProxied = proxy !== undefined;
    if (proxy) await this.checkName(target.hostname);
    const answer = await axios.request<Readable>({
      responseType: 'stream',
      transformRequest: [],
      validateStatus: () => true,
      maxRedirects: 0,
      ...config,
      headers: { 'user-agent': 'notebridge', 'content-type': false, ...config.headers },
      signal: this.signal,
      transport: { request: this.open },
      httpAgent,
      httpsAgent: proxy ? this.tunnels(httpsAgent.options) : httpsAgent,
      proxy: proxy ? settingsOf(proxy) : false,
    });
    if (this.isReady) return answer;
    // axios passes on what the proxy answers to CONNECT as the answer of the host.
    answer.data.on('error', () => undefined).destroy();
    throw new ProxyRefusal(answer.status);
  }

  /** True if the request used a connection that an earlier one had left. */
  get isReused(): boolean {
    return this.#request?.reusedSocket === true;
  }

  /**
   * Ends a direct connection with RST (RFC 9293, 3.10.7.4), so that the kernel drops undelivered bytes. After an orderly
   * close it would continue to deliver them for minutes, when nothing waits for the answer.
   */
  reset(): void {
    const { socket } = this.#request ?? {};
    const tcp = socket && (under.get(socket) ?? socket);
    if (tcp?.constructor === Socket) tcp.resetAndDestroy();
  }

  private readonly open = (options: RequestOptions, onAnswer: (answer: IncomingMessage) => void): ClientRequest => {
    const isSecure = options.protocol === 'https:';
    const request = (isSecure ? httpsRequest : httpRequest)(options, onAnswer);
    const becomesReady = () => {
      this.isReady = true;
    };
    request.once('socket', (socket) => {
      if (request.reusedSocket || (!isSecure && !socket.connecting)) becomesReady();
      else socket.once(isSecure ? 'secureConnect' : 'connect', becomesReady);
    });
    // Otherwise Node closes the request with neither an answer nor an error.
    request.once('upgrade', (_answer, socket) => {
      socket.destroy();
      request.emit('error', new Error('an answer in another protocol'));
    });
    this.#request = request;
    return request;
  };

  /** The agent whose options axios uses for a tunnel: the signal ends a connection to a proxy that does not answer. */
  private tunnels(options: HttpsAgentOptions): HttpsAgent {
    const own = { ...options, lookup: undefined, timeout: undefined, signal: this.signal };
    return new HttpsAgent(own as HttpsAgentOptions);
  }

  /**
   * Refuses the addresses of a host, although the proxy resolves its name again. A name that only the proxy can resolve is
   * left to the proxy's rules.
   */
  private async checkName(host: string): Promise<void> {
    const { lookup } = this.ways.httpsAgent.options;
    if (!lookup) return;
    const error = await new Promise<NodeJS.ErrnoException | null>((done) => lookup(host, { all: true }, done));
    if (error && error.syscall !== 'getaddrinfo') throw error;
  }
}

function settingsOf({ protocol, hostname: host, port, username, password }: URL): AxiosProxyConfig {
  const auth = { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  const usual = protocol === 'https:' ? 443 : 80;
  return { protocol, host, port: Number(port || usual), ...(username && { auth }) };
}

/** The time limits of a request. */
export interface Bounds {
  /** Until it is sent. */
  connectMs: number;
  /** Until its answer is complete. */
  totalMs?: number;
  signal?: AbortSignal | undefined;
}

/**
 * Makes one attempt, whose connection is reset after a timeout or an abort.
 *
 * @throws {PlatformError} `unreachable` if nothing was sent, and `unknown-outcome` if a byte may have been
 */
export async function attemptWithin<T>(
  ways: Ways,
  clock: Pick<Clock, 'after'>,
  operation: PlatformError['operation'],
  { connectMs, totalMs, signal }: Bounds,
  work: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const attempt = new Attempt(ways, stop.signal);
  const stopFor = (reason: string) => {
    attempt.reset();
    stop.abort(reason);
  };
  const forgetTotal = totalMs === undefined ? undefined : clock.after(totalMs, () => stopFor('timeout'));
  const forgetConnect = clock.after(connectMs, () => attempt.isReady || stopFor('connect timeout'));
  const onAbort = () => stopFor('stopped');
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  try {
    return await work(attempt);
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    // Only a code, because a message may name a host.
    const reason: string = stop.signal.reason ?? (codeOf(error) || 'no answer');
    if (attempt.isReady) throw new PlatformError('unknown-outcome', operation, { reason });
    const by = attempt.isProxied ? ' through the proxy in HTTPS_PROXY' : '';
    throw new PlatformError('unreachable', operation, { reason: `${reason}${by}` });
  } finally {
    forgetTotal?.();
    forgetConnect();
    signal?.removeEventListener('abort', onAbort);
  }
}
