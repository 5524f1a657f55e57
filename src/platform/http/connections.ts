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

/** The TCP connection under each TLS connection, because only TCP can be reset. */
const under = new WeakMap<Duplex, Socket>();

type Created = (error: Error | null, stream: Duplex) => void;

/** Connects over TLS as Node does, and remembers the TCP connection. */
class ResettableHttpsAgent extends HttpsAgent {
  override createConnection(options: HttpsAgentOptions, callback?: Created): Duplex | null | undefined {
    const tcp = connect(options as Parameters<typeof connect>[0]);
    const secure = super.createConnection({ ...options, socket: tcp } as HttpsAgentOptions, callback);
    if (secure) under.set(secure, tcp);
    // The TLS connection reports the same errors to its owner.
    tcp.on('error', () => undefined);
    return secure;
  }
}

/** Overrides NODE_TLS_REJECT_UNAUTHORIZED and --tls-min-v1.0, because clinical notes use these connections. */
export const STRICT_TLS = { rejectUnauthorized: true, minVersion: 'TLSv1.2' } as const;

/** Agents for both protocols, whose connections {@link ConnectionWatch.reset} can reset. */
export function resettableAgents(options: HttpsAgentOptions): { httpAgent: HttpAgent; httpsAgent: HttpsAgent } {
  return { httpAgent: new HttpAgent(options), httpsAgent: new ResettableHttpsAgent({ ...STRICT_TLS, ...options }) };
}

/**
 * Watches whether the connection of a request was ever ready. Node sends nothing before the TCP connection and, for https,
 * the TLS handshake with the check of the certificate are complete.
 */
export class ConnectionWatch {
  #ready = false;
  #socket: Socket | undefined;

  /** @param onReady called once, when the request can be sent */
  constructor(private readonly onReady: () => void) {}

  /** True once a byte of the request may have been sent. */
  get ready(): boolean {
    return this.#ready;
  }

  /** Opens a request like `http.request` or `https.request`, and watches its connection. */
  readonly request = (options: RequestOptions, onAnswer: (answer: IncomingMessage) => void): ClientRequest => {
    const open = options.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = open(options, onAnswer);
    request.once('socket', (socket) => this.watch(socket, request.reusedSocket));
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
    const kind = connection.ready ? 'unknown-outcome' : 'unreachable';
    throw new PlatformError(kind, operation, { reason: stopped ?? (codeOf(error) || 'no answer') });
  } finally {
    forgetTotal?.();
    forgetConnect();
    signal?.removeEventListener('abort', onAbort);
  }
}
