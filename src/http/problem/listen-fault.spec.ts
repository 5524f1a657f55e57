import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listenFault } from './listen-fault.js';

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

async function listen(port: number, host: string): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

async function told(port: number, host: string): Promise<string | undefined> {
  const error: unknown = await listen(port, host).catch((thrown: unknown) => thrown);
  return listenFault(error, { host, port });
}

test('a port that is taken is named, and the setting that changes it', async () => {
  const port = await listen(0, '127.0.0.1');
  expect(await told(port, '127.0.0.1')).toBe(
    `The address 127.0.0.1:${port} is taken (EADDRINUSE): stop what listens there, or set PORT to a free port; ` +
      'each process on one host needs its own.',
  );
});

test('a host that is not of this machine is told likewise', async () => {
  expect(await told(0, '192.0.2.1')).toMatch(/no address 192\.0\.2\.1:0 .* set HOST/);
});

test.each([
  ['ENOTFOUND', /host of nowhere\.invalid:0 .* correct HOST/],
  ['EAI_AGAIN', /host of nowhere\.invalid:0 .* set HOST to an address/],
])('a host whose name can not be resolved (%s) is told likewise', (code, sentence) => {
  const error = Object.assign(new Error(`getaddrinfo ${code} nowhere.invalid`), { code, syscall: 'getaddrinfo' });
  expect(listenFault(error, { host: 'nowhere.invalid', port: 0 })).toMatch(sentence);
});

test('a port that only root may take is told likewise', () => {
  const error = Object.assign(new Error('listen EACCES'), { code: 'EACCES', syscall: 'listen' });
  expect(listenFault(error, { host: '::1', port: 80 })).toMatch(/\[::1\]:80 .* set PORT to 1024 or above/);
});

test('what is not about listening stays what it is', () => {
  const error = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' });
  expect(listenFault(error, { host: '127.0.0.1', port: 1 })).toBeUndefined();
  expect(listenFault(new Error('other'), { host: '127.0.0.1', port: 1 })).toBeUndefined();
});
