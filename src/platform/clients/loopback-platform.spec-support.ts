import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { SELF_SIGNED } from '../../../harness/self-signed.js';
import { Clock } from '../../config/clock.js';
import type { Env } from '../../config/env.js';
import { validateEnv } from '../../config/env.validation.js';
import { Metrics } from '../../monitoring/metrics.js';
import type { Sending } from '../../sending/sending.js';
import { Contract } from '../contract/contract.js';
import type { ContractFile } from '../contract/contract-schema.js';
import { PlatformHttp } from '../http/platform-http.js';
import type { UnreadableAnswers } from '../http/unreadable-answers.repository.js';

export const API_KEY = 'key-that-must-never-show';

/** A contract in which every operation can be called. */
export const FULL_CONTRACT = {
  apiKey: { header: 'X-Partner-Key' },
  operations: {
    createSession: { method: 'POST', path: '/sessions' },
    getSession: { method: 'GET', path: '/sessions/{sessionId}' },
    getProcessingSession: {
      method: 'GET',
      path: '/processing/{processingId}',
      response: { sessionId: '/data/id' },
    },
    updateSessionTemplates: { method: 'PUT', path: '/sessions/{sessionId}/templates' },
    recordingUploadUrl: {
      method: 'POST',
      path: '/recording-url',
      body: { name: '{fileName}', type: '{contentType}', bytes: '{size}' },
      response: { uploadUrl: '/put', fileUrl: '/put' },
      upload: { headers: { 'x-type': '{contentType}' } },
    },
    complianceUploadUrl: {
      query: { name: '{fileName}' },
      response: { uploadUrl: '/put', fileUrl: '/get' },
      upload: { method: 'PUT' },
    },
    submitComplianceJob: { method: 'POST', path: '/compliance/job' },
    getComplianceJob: { response: { state: '/status' }, states: { completed: ['ok'], failed: ['bad'] } },
  },
  noteTemplates: { soap: 'SOAP note' },
};

interface Heard {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** A real HTTP server on a free loopback port that records its requests and gives the answers that a test sets. */
export class LoopbackPlatform {
  readonly heard: Heard[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;
  url = '';
  answer: Answer = (_request, response) => json(response, 200, {});

  private constructor(
    private readonly server: Server,
    private readonly scheme: string,
  ) {}

  static async start(options: { tls?: boolean } = {}): Promise<LoopbackPlatform> {
    const server = options.tls ? createTlsServer(SELF_SIGNED) : createServer();
    const platform = new LoopbackPlatform(server, options.tls ? 'https' : 'http');
    server.on('request', (request: IncomingMessage, response: ServerResponse) => platform.listen(request, response));
    server.on('connection', (socket: Socket) => {
      platform.connections += 1;
      platform.sockets.add(socket);
      socket.on('close', () => platform.sockets.delete(socket));
    });
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    platform.url = `${platform.scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return platform;
  }

  /** Lets the other side close idle connections. */
  keepConnections(): void {
    this.server.keepAliveTimeout = 0;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async listen(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    } catch {
      return;
    }
    const body = Buffer.concat(chunks).toString('utf8');
    this.heard.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
    this.answer(request, response, body);
  }
}

/** Answers with JSON. */
export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

const KEY = Buffer.alloc(32, 7).toString('base64');

/** A validated environment that points at the loopback platform. */
export function testEnv(baseUrl: string, more: Record<string, string> = {}): Env {
  return validateEnv({
    PLATFORM_BASE_URL: baseUrl,
    PLATFORM_API_KEY: API_KEY,
    PLATFORM_WEBHOOK_SECRET: 'webhook-secret-of-the-notebridge-tests',
    ADMIN_API_KEY: 'admin-key-of-the-notebridge-tests',
    DATABASE_URL: 'postgresql://127.0.0.1/none',
    DATA_KEYS: `k1:${KEY}`,
    FINGERPRINT_KEYS: `f1:${KEY}`,
    AUDIT_KEYS: `a1:${KEY}`,
    ...more,
  });
}

/** A contract from an object. */
export function contractOf(file: object): Contract {
  return Contract.of(file as ContractFile);
}

/** The client's HTTP half against a loopback platform. */
export function httpTo(
  baseUrl: string,
  contract: Contract = contractOf(FULL_CONTRACT),
  more: Record<string, string> = {},
  metrics = new Metrics(),
): PlatformHttp {
  const sending = { isAllowed: async () => true } as Sending;
  const unreadable = { note: async () => false, answered: async () => {} } as unknown as UnreadableAnswers;
  return new PlatformHttp(testEnv(baseUrl, more), contract, new Clock(), unreadable, sending, metrics);
}

/**
 * Replaces the clock of every `setTimeout` for a spec, so that a timeout ends when the test advances it
 * (`jest.advanceTimersByTime`), never because the machine is slow. Everything else, sockets too, keeps real time.
 */
export function stopTimeouts(): void {
  beforeEach(() => {
    jest.useFakeTimers({
      doNotFake: [
        'Date',
        'hrtime',
        'performance',
        'nextTick',
        'queueMicrotask',
        'setImmediate',
        'clearImmediate',
        'setInterval',
        'clearInterval',
      ],
    });
  });
  afterEach(() => {
    jest.useRealTimers();
  });
}
