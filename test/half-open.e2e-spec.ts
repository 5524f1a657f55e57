import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { useMirrors } from './support/service.js';
import { deliver, sessionEvent, signed } from './support/webhook-requests.js';

const MIB = 1024 ** 2;
const CONNECTIONS = 1_000;
/** Fewer than come, so that some of them have to give way. */
const PLACES = 600;
/** What the connections may cost: 16 KiB of headers each, and as much again for the sockets, the parsers and slack. */
const BOUND = 2 * CONNECTIONS * 16 * 1024 + 64 * MIB;

const newMirror = useMirrors();

const residentBytes = ({ pid }: Service): number =>
  Number(spawnSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }).stdout) * 1024;

it('1,000 connections that never finish a request cost little memory, and the receiver answers beside them', async () => {
  const mirror = await newMirror();
  const service = await mirror.start({
    ROLES: 'api',
    MAX_CONNECTIONS: String(PLACES),
    HEADERS_TIMEOUT_SECONDS: '3600',
  });
  const delivered = async (session: string) => (await deliver(service, signed(sessionEvent(session)))).status;
  expect(await delivered('before')).toBe(204);
  const before = residentBytes(service);

  const begun = 'POST /webhooks/platform HTTP/1.1\r\nHost: x\r\n';
  const parts = ['', begun, `${begun}Cookie: ${'x'.repeat(15_000)}`, 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'];
  const sockets: Socket[] = [];
  for (let at = 0; at < CONNECTIONS; at++) {
    const socket = createConnection(Number(new URL(service.url).port), '127.0.0.1').on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(parts[at % parts.length] ?? '');
  }
  const open = () => sockets.filter((socket) => !socket.closed).length;
  for (const socket of sockets) socket.resume();
  await until('the oldest have given way', () => open() < PLACES);
  expect(await delivered('beside')).toBe(204);
  // What was garbage meanwhile goes by and by; what the connections hold stays as long as they do.
  await until('they cost little', () => residentBytes(service) - before < BOUND);
  expect((await service.call('GET', '/health/live')).status).toBe(200);
  for (const socket of sockets) socket.destroy();
});
