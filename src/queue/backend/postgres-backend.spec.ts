import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { PostgresQueueBackend } from 'bullmq';
import { createPatientPostgresBackend } from './backend.js';

/** A message of the PostgreSQL protocol (manual, Message Formats): type, length, content. */
const message = (type: string, content: Buffer) => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + content.length);
  return Buffer.concat([Buffer.from(type), length, content]);
};
const AUTHENTICATION_OK = message('R', Buffer.alloc(4));
const READY_FOR_QUERY = message('Z', Buffer.from('I'));
const SHUT_DOWN = message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'));

test('a database that shuts down in the moment in which it takes a connection ends no process', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(Buffer.concat([AUTHENTICATION_OK, READY_FOR_QUERY, SHUT_DOWN])));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connection = { host: '127.0.0.1', port, user: 'u', password: 'p', database: 'd', ssl: false };
  const backend = createPatientPostgresBackend('queue', { connection } as never) as PostgresQueueBackend;
  backend.on('error', () => undefined);
  const listening = backend.connection.getListenClient().catch(() => 'refused');
  const ready = backend.waitUntilReady().catch(() => 'refused');
  await listening;
  expect(await ready).toBe('refused');
  await once(server.close(), 'close');
});
