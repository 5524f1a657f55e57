import { connect, createServer, type Socket } from 'node:net';

/** A proxy in front of PostgreSQL (without TLS) that loses the answer to one commit, as a crash at that moment does. */
export interface CommitProxy {
  port: number;
  /**
   * Lets the server execute the next commit after a statement that contains all these words, and cuts the connection
   * instead of answering.
   */
  loseCommitAfter(...words: string[]): void;
  /** Lets the server execute a self-committing statement that contains all these words, and cuts the connection. */
  loseAnswerTo(...words: string[]): void;
  /** The number of lost answers. */
  lost(): number;
  close(): Promise<void>;
}

/** How long the server has to execute the commit whose answer is lost. */
const DONE_MS = 200;

/** @param target port on 127.0.0.1 */
export async function startCommitProxy(target: number): Promise<CommitProxy> {
  const sockets = new Set<Socket>();
  let sought: string[] | undefined;
  let commitsItself = false;
  let lost = 0;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    let isChosen = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    upstream.pipe(client);
    client.on('data', (chunk) => {
      if (sought?.every((word) => chunk.includes(word))) {
        isChosen = true;
        sought = undefined;
      }
      if (isChosen && (commitsItself || chunk.includes('COMMIT'))) {
        isChosen = false;
        upstream.unpipe().resume();
        lost += 1;
        setTimeout(() => client.destroy(), DONE_MS);
      }
      upstream.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    loseCommitAfter: (...words) => {
      sought = words;
      commitsItself = false;
    },
    loseAnswerTo: (...words) => {
      sought = words;
      commitsItself = true;
    },
    lost: () => lost,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
