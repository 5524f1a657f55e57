import { Agent, request } from 'node:http';
import { HANG_MS } from '../../harness/until.js';
import type { FuzzRequest } from './request-maker.js';

/** The answer to a request; without a status if the request hung or the connection broke. */
export interface FuzzAnswer {
  readonly status: number | 'hang' | 'cut';
  readonly type: string;
  readonly text: string;
}

/** Sends requests as they are, without correcting them. */
export class Sender {
  private readonly agent = new Agent({ keepAlive: true });
  private readonly port: number;

  constructor(url: string) {
    this.port = Number(new URL(url).port);
  }

  send({ method, url, headers, body }: Pick<FuzzRequest, 'method' | 'url' | 'headers' | 'body'>): Promise<FuzzAnswer> {
    return new Promise((resolve) => {
      // Node sends no length for methods that rarely have a body, so the body would be read as the next request.
      const sent = body ? { ...headers, 'content-length': body.length } : headers;
      const call = request({ agent: this.agent, host: '127.0.0.1', port: this.port, method, path: url, headers: sent });
      let answer: FuzzAnswer = { status: 'cut', type: '', text: '' };
      const timeout = setTimeout(() => {
        answer = { ...answer, status: 'hang' };
        call.destroy();
      }, HANG_MS);
      call.on('response', (response) => {
        answer = { status: response.statusCode ?? 0, type: response.headers['content-type'] ?? '', text: '' };
        response.setEncoding('utf8').on('data', (chunk: string) => {
          answer = { ...answer, text: answer.text + chunk };
        });
        response.on('error', () => {
          if (answer.status !== 'hang') answer = { ...answer, status: 'cut' };
        });
      });
      call.on('error', () => {});
      call.on('close', () => {
        clearTimeout(timeout);
        // A server may close a connection after any answer, and so while the next request is on its way (RFC 9112 §9.5).
        const isStale = call.reusedSocket && answer.status === 'cut' && answer.type === '';
        resolve(isStale ? this.send({ method, url, headers, body }) : answer);
      });
      call.end(body);
    });
  }

  close(): void {
    this.agent.destroy();
  }
}
