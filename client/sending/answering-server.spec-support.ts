import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Answer = (response: ServerResponse, request: IncomingMessage) => unknown;

/** A service that gives the answers of a test. */
export interface AnsweringServer {
  url: string;
  /** In this order; the last one is repeated. */
  answers: Answer[];
  requests: string[];
}

/** Starts a server for the tests of a file. */
export function useAnsweringServer(): AnsweringServer {
  const state: AnsweringServer = { url: '', answers: [], requests: [] };
  const server = createServer(async (request, response) => {
    state.requests.push(`${request.method} ${request.url}`);
    const answer = state.answers.length > 1 ? state.answers.shift() : state.answers[0];
    // A caller may leave in the middle of its body.
    request.on('error', () => undefined).resume();
    if (request.method === 'POST') await once(request, 'end').catch(() => undefined);
    answer?.(response, request);
  });
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  beforeEach(() => {
    state.requests = [];
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return state;
}

export const json =
  (body: string, status = 200): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
