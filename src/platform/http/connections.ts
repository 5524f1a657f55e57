import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import {
  Agent as HttpsAgent,
  type AgentOptions as HttpsAgentOptions,
  request as httpsRequest,
  type RequestOptions,
} from 'node:https';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../../config/clock.js';
import { codeOf } from '../../http/problem/fault.js';
import { PlatformError } from '../contract/platform-errors.js';

/** The TCP connection under each TLS connection: only that one can be reset. */
const under = new WeakMap<Duplex, Socket>();

type Created = (error: Error | null, stream: Duplex) => void;

/** Connects over TLS as Node does, and remembers what lies under it. */
class OverKnownTcp extends HttpsAgent {
  override createConnection(options: HttpsAgentOptions, callback?: Created): Duplex | null | undefined {
    const tcp = connect(options as Parameters<typeof connect>[0]);
    const secure = super.createConnection({ ...options, socket: tcp } as HttpsAgentOptions, callback);
    if (secure) under.set(secure, tcp);
    // The TLS connection reports to its owner everything that ends this one.
    tcp.on('error', () => undefined);
    return secure;
  }
}

/** Whatever the process is started with (NODE_TLS_REJECT_UNAUTHORIZED, --tls-min-v1.0): notes go over this connection. */
export const STRICT_TLS = { rejectUnauthorized: true, minVersion: 'TLSv1.2' } as const;

/** Agents for both protocols whose connections {@link ConnectionWatch.reset} can end at once. */
export function resettableAgents(options: HttpsAgentOptions): { httpAgent: HttpAgent; httpsAgent: HttpsAgent } {
  return { httpAgent: new HttpAgent(options), httpsAgent: new OverKnownTcp({ ...STRICT_TLS, ...options }) };
}

/**
 * Knows of one request whether its connection was ever ready to carry it. Node sends nothing before the TCP connection,
 * and for https the TLS handshake with its check of the certificate, is complete: until then nothing was sent.
 */
export class ConnectionWatch {
  #ready = false;
  #socket: Socket | undefined;

  /** @param onReady called once, when the request can begin to leave */
  constructor(private readonly onReady: () => void) {}

  /** True from the moment on at which a byte of the request may have left. */
  get ready(): boolean {
    return this.#ready;
  }

  /** Opens a request like `http.request` and `https.request`, and watches its connection. */
  readonly request = (options: RequestOptions, onAnswer: (answer: IncomingMessage) => void): ClientRequest => {
    const open = options.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = open(options, onAnswer);
    request.once('socket', (socket) => this.watch(socket, request.reusedSocket));
    return request;
  };

  /**
   * Ends the connection by RST (RFC 9293, 3.10.7.4): the kernel then drops what it has not delivered yet. After an
   * orderly close it would go on delivering for minutes, long after nothing waits for the request any more.
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

/** What a request is held to, in milliseconds. */
interface Bounds {
  /** Until it begins to leave. */
  connectMs: number;
  /** Until its whole answer is there. */
  totalMs?: number;
  signal?: AbortSignal | undefined;
}

/**
 * Sends one request over a watched connection, which is reset when it takes too long or is to stop.
 *
 * @param clock measures the timeouts
 * @throws {PlatformError} that of `send`, or for whatever else it throws `unreachable` when nothing left, and
 *   `unknown-outcome` when a byte may have
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
    const kind = connection.ready ? 'unknown-outcome' : 'unreachable';
    throw new PlatformError(kind, operation, { reason: stopped ?? (codeOf(error) || 'no answer') });
  } finally {
    forgetTotal?.();
    forgetConnect();
    signal?.removeEventListener('abort', onAbort);
  }
}
