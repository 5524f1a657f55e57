import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The message of a server that is ready outside a transaction: type, length, status (PostgreSQL manual, Message Formats). */
const IDLE = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/**
 * A pooler in transaction mode, like PgBouncer: each client opens a connection to the server, and then gets the one that
 * was freed last, until its transaction has ended.
 *
 * @param port of a PostgreSQL on this machine
 */
export async function startTransactionPooler(port: number): Promise<{ port: number; close(): Promise<void> }> {
  const free: Socket[] = [];
  const users = new Map<Socket, Socket>();
  const sockets: Socket[] = [];
  const open = (client: Socket) => {
    const server = connect(port, '127.0.0.1');
    sockets.push(client, server);
    users.set(server, client);
    server
      .on('error', () => undefined)
      .on('data', (bytes) => {
        users.get(server)?.write(bytes);
        if (!bytes.subarray(-IDLE.length).equals(IDLE)) return;
        users.delete(server);
        free.push(server);
      });
    client
      .on('error', () => undefined)
      .on('data', (bytes) => {
        const taken = [...users].find(([, user]) => user === client)?.[0] ?? free.pop();
        if (!taken) throw new Error('every connection is in use');
        users.set(taken, client);
        taken.write(bytes);
      });
  };
  const pooler = createServer(open).listen(0, '127.0.0.1');
  await once(pooler, 'listening');
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await once(pooler.close(), 'close');
  };
  return { port: (pooler.address() as AddressInfo).port, close };
}
