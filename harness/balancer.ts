import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';

/** A failure that a caller noticed, or would have noticed without another member. */
export interface Failure {
  /** Port of the member; undefined if none accepted the request. */
  readonly port?: number;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /**
   * A status of 500 or above; `refused` if a ready member accepted no connection; `cut` if the connection ended before
   * the whole answer arrived.
   */
  readonly what: number | 'refused' | 'cut';
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
}

/** A load balancer in front of several processes at fixed loopback ports. */
export interface Balancer {
  readonly port: number;
  readonly url: string;
  readonly failures: readonly Failure[];
  /** True if a member's last health check returned 200. */
  isReady(port: number): boolean;
  close(): Promise<void>;
}

/** Milliseconds between two health checks of one member. */
const CHECK_EVERY_MS = 200;

/** Connection-specific headers (RFC 9110 §7.6.1). Node frames the body again. */
const OF_A_CONNECTION = new Set(['connection', 'keep-alive', 'transfer-encoding']);

/**
 * Forwards requests to the ready members in turn, over kept connections; to all members if none is ready. It tries another
 * member only after a refused connection, because a request that was sent may have been handled.
 *
 * @param members ports on 127.0.0.1
 */
export async function startBalancer(members: () => readonly number[]): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true });
  const failures: Failure[] = [];
  const ready = new Set<number>();
  const beingChecked = new Set<number>();
  let turn = 0;

  const check = async (port: number) => {
    if (beingChecked.has(port)) return;
    beingChecked.add(port);
    const isOk = await fetch(`http://127.0.0.1:${port}/health/ready`).then(
      async (answer) => (await answer.arrayBuffer()) && answer.ok,
      () => false,
    );
    if (isOk) ready.add(port);
    else ready.delete(port);
    beingChecked.delete(port);
  };
  const checking = setInterval(() => {
    for (const port of members()) void check(port);
  }, CHECK_EVERY_MS);

  const next = (refusedBy: readonly number[]): number | undefined => {
    const left = members().filter((port) => !refusedBy.includes(port));
    const able = left.filter((port) => ready.has(port));
    const choice = able.length > 0 ? able : left;
    turn += 1;
    return choice[turn % choice.length];
  };

  const pass = (incoming: IncomingMessage, outgoing: ServerResponse, refusedBy: readonly number[]) => {
    const port = next(refusedBy);
    const { method = '', url: path = '' } = incoming;
    const fail = (what: Failure['what'], status?: number) => {
      failures.push({ port, method, path: path.split('?', 1)[0] ?? '', what, at: performance.now() });
      if (status) outgoing.writeHead(status).end();
    };
    if (port === undefined) return fail('refused', 503);
    const upstream = request({ agent, host: '127.0.0.1', port, method, path, headers: passedOn(incoming.headers) });
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) upstream.destroy();
    });
    upstream.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', () => incoming.pipe(upstream));
      else incoming.pipe(upstream);
    });
    upstream.once('response', (answer) => {
      const { statusCode: status = 0 } = answer;
      if (status >= 500) fail(status);
      outgoing.writeHead(status, passedOn(answer.headers));
      answer.pipe(outgoing);
      answer.once('error', () => {
        if (outgoing.destroyed) return;
        fail('cut');
        outgoing.destroy();
      });
    });
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      if (outgoing.destroyed || outgoing.headersSent) return;
      if (error.code !== 'ECONNREFUSED') return fail('cut', 502);
      if (ready.delete(port)) fail('refused');
      pass(incoming, outgoing, [...refusedBy, port]);
    });
  };

  // Otherwise a request could be in flight on a connection that the member closes as idle, and would count as cut.
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 0 }, (incoming, outgoing) =>
    pass(incoming, outgoing, []),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    failures,
    isReady: (member) => ready.has(member),
    close: async () => {
      clearInterval(checking);
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}

const passedOn = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_A_CONNECTION.has(name)));
