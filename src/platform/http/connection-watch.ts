import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { resetConnection } from './resettable-agents.js';

/**
 * Knows of one request whether its connection was ever ready to carry it. Node sends nothing of a request before the
 * TCP connection, and for https the TLS handshake with its check of the certificate, is complete: until then a failed
 * request has certainly not been sent.
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

  /** Ends the connection so that nothing of the request which has not arrived by now arrives later. */
  reset(): void {
    if (this.#socket) resetConnection(this.#socket);
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
