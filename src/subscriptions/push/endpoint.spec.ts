import dns from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { Clock } from '../../config/clock.js';
import { testEnv } from '../../platform/clients/loopback-platform.spec-support.js';
import { Endpoint } from './endpoint.js';
import { newSecret } from './message.js';

const secrets = [newSecret(Buffer.alloc(32, 1))];

afterEach(() => {
  jest.restoreAllMocks();
});

test.each([
  ['', 'address-not-allowed', 0],
  ['ehr.example.org', 'no-connection', 1],
])(
  'a name with a private address is reached only if it is allowed (allowed: %j)',
  async (hosts, fault, connections) => {
    const sockets: net.Socket[] = [];
    const server = net.createServer((socket) => {
      sockets.push(socket);
      socket.destroy();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const lookup = (_name: string, _options: object, done: (error: null, found: dns.LookupAddress[]) => void) =>
      done(null, [{ address: '127.0.0.1', family: 4 }]);
    jest.spyOn(dns, 'lookup').mockImplementation(lookup as typeof dns.lookup);
    const env = testEnv('https://platform.example.com', { SUBSCRIPTION_HOSTS_ALLOWED: hosts });
    const url = `https://ehr.example.org:${(server.address() as AddressInfo).port}/hook`;
    const answer = await new Endpoint(env, new Clock()).deliver({ url, secrets }, { id: '1-1', body: '{}' });
    server.close();
    expect(answer).toMatchObject({ status: null, fault });
    expect(sockets).toHaveLength(connections);
  },
);

test('a 2xx counts, although its answer does not end within a second', async () => {
  const server = createServer((_, answer) => void answer.writeHead(200, { 'content-length': '9' }).write('{'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const clock = new Clock();
  const waits: number[] = [];
  // Only the second passes, and immediately.
  clock.after = (ms, work) => {
    waits.push(ms);
    if (ms === 1_000) setImmediate(work);
    return () => undefined;
  };
  const endpoint = new Endpoint(testEnv('http://127.0.0.1:1'), clock);
  const url = `http://127.0.0.1:${port}/hook`;
  expect(await endpoint.deliver({ url, secrets }, { id: '1-1', body: '{}' })).toMatchObject({
    status: 200,
    fault: null,
  });
  expect(waits).toContain(1_000);
  server.closeAllConnections();
  server.close();
});
