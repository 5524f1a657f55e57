import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';

/** A received message. */
export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

/** Answers a message; without an answer, the connection stays open. */
export type Respond = (answer: ServerResponse, received: Received) => void;

/** Answers with a status, and headers. */
export const status =
  (code: number, headers: Record<string, string> = {}): Respond =>
  (answer) =>
    void answer.writeHead(code, headers).end();

/** The headers of an answer with status 101 (RFC 9110, 7.8). */
export const SWITCH_PROTOCOL = { connection: 'upgrade', upgrade: 'other' };

/** An endpoint of an EHR. By default, it accepts every message. */
export class PushReceiver {
  /** All attempts, in the order in which their bodies were complete. */
  readonly attempts: Received[] = [];
  /** The cursors of the accepted messages, in order. */
  readonly taken: string[] = [];
  respond: Respond = status(204);

  private constructor(
    private readonly server: ReturnType<typeof createServer>,
    readonly url: string,
  ) {}

  /** @param tls its certificate and key; without them, it speaks plain HTTP */
  static async start(tls?: ServerOptions): Promise<PushReceiver> {
    const server = tls ? createTlsServer(tls) : createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const receiver = new PushReceiver(server, `${tls ? 'https' : 'http'}://127.0.0.1:${port}/hook`);
    server.on('request', (request, answer) => void receiver.receive(request, answer));
    return receiver;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  private async receive(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return; // the sender gave up
    }
    const received = { headers: request.headers, body: Buffer.concat(chunks).toString() };
    this.attempts.push(received);
    answer.once('finish', () => {
      if (answer.statusCode >= 200 && answer.statusCode < 300) this.taken.push(String(received.headers['webhook-id']));
    });
    this.respond(answer, received);
  }
}
