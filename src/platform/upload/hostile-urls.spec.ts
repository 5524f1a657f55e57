import { AsyncLocalStorage } from 'node:async_hooks';
import dns, { type LookupAddress } from 'node:dns';
import net from 'node:net';
import { Readable } from 'node:stream';
import { Clock } from '../../config/clock.js';
import { LoopbackPlatform, testEnv } from '../clients/loopback-platform.spec-support.js';
import { HOSTILE_ANSWERS, hostileUrls } from './hostile-urls.spec-support.js';
import { UploadStream } from './upload-stream.js';

const PORT = 65_535;
const URLS = hostileUrls(PORT);

/** Set while a file is being sent. Other suites of the same Jest worker may have left a running service. */
const sending = new AsyncLocalStorage<true>();

/** Sends a file. @returns `sent`, or the kind of the failure */
function send(url: string, env: Record<string, string> = {}): Promise<string | undefined> {
  const file = Readable.from([Buffer.from('%PDF-')]);
  const upload = new UploadStream(testEnv('https://platform.example.com', env), new Clock());
  return sending
    .run(true, () =>
      upload.uploadTo(url, file, { contentLength: 5, method: 'PUT', headers: { 'content-type': 'application/pdf' } }),
    )
    .then(() => 'sent')
    .catch((error: { kind?: string }) => error.kind);
}

/** @returns every address to which the sending of a file begins to connect */
function watchConnections(): string[] {
  const attempts: string[] = [];
  const connect = net.Socket.prototype.connect;
  jest.spyOn(net.Socket.prototype, 'connect').mockImplementation(function (this: net.Socket, ...args: unknown[]) {
    if (sending.getStore()) this.on('connectionAttempt', (address: string) => attempts.push(address));
    return Reflect.apply(connect, this, args) as net.Socket;
  });
  return attempts;
}

/** Lets names resolve to these lists of addresses, one after the other. @returns the names that were looked up */
function resolveAs(answers: Record<string, string[][]>): string[] {
  const asked: string[] = [];
  const lookup = (name: string, _options: object, done: (error: null, found: LookupAddress[]) => void) => {
    const lists = answers[name] ?? [];
    const times = asked.filter((each) => each === name).length;
    asked.push(name);
    const found = lists[Math.min(times, lists.length - 1)] ?? [];
    done(
      null,
      found.map((address) => ({ address, family: net.isIP(address) })),
    );
  };
  jest.spyOn(dns, 'lookup').mockImplementation(lookup as typeof dns.lookup);
  return asked;
}

afterEach(() => {
  jest.restoreAllMocks();
});

describe('a file', () => {
  it('is sent to none of 500 hostile URLs, which are not even resolved', async () => {
    expect(URLS.length).toBeGreaterThanOrEqual(500);
    const [attempts, asked] = [watchConnections(), resolveAs({})];
    for (const url of URLS) expect([url, await send(url)]).toEqual([url, 'rejected']);
    expect([attempts, asked]).toEqual([[], []]);
  });

  it('is never sent to cloud metadata or multicast, even if private hosts are allowed', async () => {
    const attempts = watchConnections();
    const never = URLS.filter((url) =>
      /^https?:\/\/(169\.254|0xa9fe|224|255\.255|\[fe80|\[ff0|\[::ffff:169)/.test(url),
    );
    expect(never.length).toBeGreaterThan(15);
    for (const url of never)
      expect([url, await send(url, { PRIVATE_HOSTS_ALLOWED: 'true' })]).toEqual([url, 'rejected']);
    expect(attempts).toEqual([]);
  });

  it.each(Object.entries(HOSTILE_ANSWERS))(
    'is not sent to %s, which resolves to a private host',
    async (name, lists) => {
      const [attempts, asked] = [watchConnections(), resolveAs(HOSTILE_ANSWERS)];
      // An earlier check of the name would have seen its public addresses.
      for (let look = 1; look < lists.length; look += 1) dns.lookup(name, { all: true }, () => undefined);
      expect(await send(`https://${name}:${PORT}/a.pdf`)).toBe('rejected');
      expect([attempts, asked.length]).toEqual([[], lists.length]);
    },
  );

  it('is sent to the address that was checked, because the name is resolved once', async () => {
    const store = await LoopbackPlatform.start();
    store.answer = (_request, response) => response.writeHead(200).end();
    const attempts = watchConnections();
    const asked = resolveAs({ 'store.example.com': [['127.0.0.1'], ['169.254.169.254']] });
    const url = `http://store.example.com:${new URL(store.url).port}/a.pdf`;
    expect(await send(url, { PRIVATE_HOSTS_ALLOWED: 'true' })).toBe('sent');
    expect([attempts, asked]).toEqual([['127.0.0.1'], ['store.example.com']]);
    expect(await send(url, { PRIVATE_HOSTS_ALLOWED: 'true' })).toBe('rejected');
    expect(attempts).toEqual(['127.0.0.1']);
    await store.stop();
  });
});
