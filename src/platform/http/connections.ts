import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import {
  Agent as HttpsAgent,
  type AgentOptions as HttpsAgentOptions,
  request as httpsRequest,
  type RequestOptions,
} from 'node:https';
import { connect, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../../config/clock.js';
import { codeOf } from '../../errors/error-code.js';
import { PlatformError } from '../contract/platform-errors.js';
import { openTunnel, ProxyRefusal, type ProxySettings, proxyFor } from './proxy.js';

/** The TCP connection under each TLS connection, because only TCP can be reset. */
const under = new WeakMap<Duplex, Socket>();

type Created = (error: Error | null, stream: Duplex) => void;

/** The options of a connection, with those of the agent and of the request. */
interface ConnectionOptions extends HttpsAgentOptions {
  /** Called with the connection to a proxy, as long as it leads nowhere. */
  onProxy?: (socket: Socket) => void;
}

const NO_PROXIES: ProxySettings = { NO_PROXY: [] };

/** Connects over TLS as Node does, if need be through a proxy, and remembers the TCP connection. */
class ResettableHttpsAgent extends HttpsAgent {
  constructor(
    options: HttpsAgentOptions,
    private readonly proxies: ProxySettings,
  ) {
    super(options);
  }

  override createConnection(options: ConnectionOptions, callback: Created): Duplex | null | undefined {
    const { host = '', port = 443 } = options;
    const proxy = proxyFor(host, Number(port), this.proxies);
    if (!proxy) return this.secure(connect(options as Parameters<typeof connect>[0]), options);
    const fail = (error: Error) => callback(error, undefined as unknown as Duplex);
    checkAddress(host, options, (refusal) => {
      if (refusal) return fail(refusal);
      const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
      const request = openTunnel(proxy, authority, TO_PROXY, (error, tunnel) => {
        if (error || !tunnel) return fail(error ?? new Error('no tunnel'));
        callback(null, this.secure(tunnel, options) as Duplex);
      });
      request.once('socket', (socket) => options.onProxy?.(under.get(socket) ?? socket));
    });
    return undefined;
  }

  /** Speaks TLS with the host at the other end of a connection. */
  private secure(socket: Socket, options: ConnectionOptions): Duplex | null | undefined {
    const secure = super.createConnection({ ...options, socket } as HttpsAgentOptions);
    if (secure) under.set(secure, under.get(socket) ?? socket);
    // The TLS connection reports the same errors to its owner.
    socket.on('error', () => undefined);
    return secure;
  }
}

/**
 * Applies the `lookup` of a connection, which may refuse the addresses of a host, although the proxy resolves its name
 * again. A name that only the proxy can resolve is left to the proxy's rules.
 */
function checkAddress(host: string, { lookup }: ConnectionOptions, done: (refusal?: Error) => void): void {
  if (!lookup || isIP(host) !== 0) done();
  else lookup(host, { all: true }, (error) => done(error && error.syscall !== 'getaddrinfo' ? error : undefined));
}

/** Overrides NODE_TLS_REJECT_UNAUTHORIZED and --tls-min-v1.0, because clinical notes use these connections. */
const STRICT_TLS = { rejectUnauthorized: true, minVersion: 'TLSv1.2' } as const;

/** Connects to proxies over TLS. */
const TO_PROXY = new ResettableHttpsAgent({ ...STRICT_TLS, keepAlive: false }, NO_PROXIES);

/** Agents for both protocols, whose connections {@link ConnectionWatch.reset} can reset. Only https goes through proxies. */
export function resettableAgents(options: HttpsAgentOptions, proxies = NO_PROXIES) {
  return {
    httpAgent: new HttpAgent(options),
    httpsAgent: new ResettableHttpsAgent({ ...STRICT_TLS, ...options }, proxies),
  };
}

/**
 * Watches whether the connection of a request was ever ready. Node sends nothing before the TCP connection and, for https,
 * the TLS handshake with the check of the certificate are complete.
 */
export class ConnectionWatch {
  #ready = false;
  #socket: Socket | undefined;
  #proxied = false;

  /** @param onReady called once, when the request can be sent */
  constructor(private readonly onReady: () => void) {}

  /** True once a byte of the request may have been sent. */
  get ready(): boolean {
    return this.#ready;
  }

  /** True if the connection goes through a proxy. */
  get proxied(): boolean {
    return this.#proxied;
  }

  /**
   * Opens a request like `http.request` or `https.request`, and watches its connection. An answer that switches to another
   * protocol (101) is an error; Node would close the request with neither an answer nor an error.
   */
  readonly request = (options: RequestOptions, onAnswer: (answer: IncomingMessage) => void): ClientRequest => {
    const open = options.protocol === 'https:' ? httpsRequest : httpRequest;
    const onProxy = (socket: Socket) => {
      this.#proxied = true;
      this.#socket = socket;
    };
    const request = open({ ...options, onProxy } as RequestOptions, onAnswer);
    request.once('socket', (socket) => this.watch(socket, request.reusedSocket));
    request.once('upgrade', (_answer, socket) => {
      socket.destroy();
      request.emit('error', new Error('an answer in another protocol'));
    });
    return request;
  };

  /**
   * Ends the connection with RST (RFC 9293, 3.10.7.4), so that the kernel drops undelivered bytes. After an orderly close
   * it would continue to deliver them for minutes, when nothing waits for the answer.
   */
  reset(): void {
    if (this.#socket) (under.get(this.#socket) ?? this.#socket).resetAndDestroy();
  }

  private watch(socket: Socket, reused: boolean): void {
    this.#socket = socket;
    const becomesReady = () => {
      this.#ready = true;
      this.onReady();
    };
    const secure = socket instanceof TLSSocket;
    if (!socket.connecting && (reused || !secure)) becomesReady();
    else socket.once(secure ? 'secureConnect' : 'connect', becomesReady);
  }
}

/** The time limits of a request. */
interface Bounds {
  /** Until it is sent. */
  connectMs: number;
  /** Until its answer is complete. */
  totalMs?: number;
  signal?: AbortSignal | undefined;
}

/**
 * Sends a request over a watched connection, which is reset after a timeout or an abort.
 *
 * @param clock measures the timeouts
 * @throws {PlatformError} from `send`; for its other errors, `unreachable` if nothing was sent, and `unknown-outcome` if
 *   a byte may have been
 */
export async function sendWithin<T>(
  clock: Pick<Clock, 'after'>,
  operation: PlatformError['operation'],
  { connectMs, totalMs, signal }: Bounds,
  send: (connection: ConnectionWatch, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  let stopped: string | undefined;
  const stopFor = (reason: string) => {
    stopped ??= reason;
    connection.reset();
    stop.abort();
  };
  const connection = new ConnectionWatch(() => forgetConnect());
  const forgetTotal = totalMs === undefined ? undefined : clock.after(totalMs, () => stopFor('timeout'));
  const forgetConnect = clock.after(connectMs, () => stopFor('connect timeout'));
  const onAbort = () => stopFor('stopped');
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  try {
    return await send(connection, stop.signal);
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    const reason = stopped ?? reasonOf(error);
    if (connection.ready) throw new PlatformError('unknown-outcome', operation, { reason });
    const by = connection.proxied ? ' through the proxy in HTTPS_PROXY' : '';
    throw new PlatformError('unreachable', operation, { reason: `${reason}${by}` });
  } finally {
    forgetTotal?.();
    forgetConnect();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** A short cause, without a host or another part of the error's message. */
function reasonOf(error: unknown): string {
  const refusal = [error, error instanceof Error ? error.cause : undefined].find(
    (each) => each instanceof ProxyRefusal,
  );
  return refusal ? `${refusal.status} to CONNECT` : codeOf(error) || 'no answer';
}
