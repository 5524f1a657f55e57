import dns, { type LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import net, { type AddressInfo, type Server } from 'node:net';
import { Readable } from 'node:stream';
import type { Service } from '../harness/service.js';
import { Clock } from '../src/config/clock.js';
import { validateEnv } from '../src/config/env.js';
import { HOSTILE_ANSWERS, hostileUrls } from '../src/platform/upload/hostile-urls.spec-support.js';
import { UploadStream } from '../src/platform/upload/upload-stream.js';
import { type Mirror, useMirrors } from './support/service.js';
import { answerTo } from './support/webhook-requests.js';

/** Counts who comes. */
interface Trap {
  port: number;
  connections(): number;
}

const servers: (Server | HttpServer)[] = [];
let trap: Trap;
let urls: string[];

async function setTrap(): Promise<Trap> {
  let connections = 0;
  const catchIt = (socket: net.Socket) => {
    connections += 1;
    socket.destroy();
  };
  const four = net.createServer(catchIt).listen(0, '127.0.0.1');
  await once(four, 'listening');
  const { port } = four.address() as AddressInfo;
  servers.push(four);
  const six = net.createServer(catchIt).listen(port, '::1');
  // A machine without IPv6 has nothing to be caught there.
  await Promise.race([once(six, 'listening'), once(six, 'error')]).catch(() => undefined);
  servers.push(six);
  return { port, connections: () => connections };
}

function uploads(env: Record<string, string> = {}): UploadStream {
  const usual = {
    PLATFORM_BASE_URL: 'https://platform.example.com',
    PLATFORM_API_KEY: 'key',
    PLATFORM_WEBHOOK_SECRET: 'webhook-secret-of-the-notebridge-tests',
    ADMIN_API_KEY: 'admin-key-of-the-notebridge-tests',
  };
  return new UploadStream(validateEnv({ ...usual, ...env }), new Clock());
}

/** Watches every address to which this process begins to connect. */
function watchConnections(): string[] {
  const attempts: string[] = [];
  const connect = net.Socket.prototype.connect;
  jest.spyOn(net.Socket.prototype, 'connect').mockImplementation(function (this: net.Socket, ...args: unknown[]) {
    this.on('connectionAttempt', (address: string) => attempts.push(address));
    return Reflect.apply(connect, this, args) as net.Socket;
  });
  return attempts;
}

/** Lets names resolve as told. @returns how often each was asked for */
function resolveAs(answers: Record<string, string[][]>): Map<string, number> {
  const asked = new Map<string, number>();
  const lookup = (name: string, _options: object, done: (error: Error | null, found: LookupAddress[]) => void) => {
    const times = asked.get(name) ?? 0;
    asked.set(name, times + 1);
    const lists = answers[name] ?? [];
    const found = lists[Math.min(times, lists.length - 1)] ?? [];
    done(
      null,
      found.map((address) => ({ address, family: net.isIP(address) })),
    );
  };
  jest.spyOn(dns, 'lookup').mockImplementation(lookup as typeof dns.lookup);
  return asked;
}

const AT_ONCE = 8;

/** Does the work for each item, for some of them at a time. */
async function atOnce<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

const sendTo = (stream: UploadStream, url: string) =>
  stream
    .uploadTo(url, Readable.from([Buffer.from('%PDF-')]), {
      contentLength: 5,
      headers: { 'content-type': 'application/pdf' },
    })
    .then(() => 'sent')
    .catch((error: { kind?: string }) => error.kind);

beforeAll(async () => {
  trap = await setTrap();
  urls = hostileUrls(trap.port);
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(() => {
  for (const server of servers) server.close();
});

it('there are 500 hostile URLs', () => {
  expect(urls.length).toBeGreaterThanOrEqual(500);
});

it('a file is sent to none of them, and nothing is connected to', async () => {
  const attempts = watchConnections();
  const asked = resolveAs({});
  const stream = uploads();
  for (const url of urls) expect([url, await sendTo(stream, url)]).toEqual([url, 'rejected']);
  expect([attempts, [...asked.keys()], trap.connections()]).toEqual([[], [], 0]);
});

it('where own hosts are allowed, metadata of clouds, multicast and what is no host still are not', async () => {
  const attempts = watchConnections();
  const stream = uploads({ PRIVATE_HOSTS_ALLOWED: 'true' });
  const never = urls.filter((url) => /^https?:\/\/(169\.254|0xa9fe|224|255\.255|\[fe80|\[ff0|\[::ffff:169)/.test(url));
  expect(never.length).toBeGreaterThan(15);
  for (const url of never) expect([url, await sendTo(stream, url)]).toEqual([url, 'rejected']);
  expect(attempts).toEqual([]);
});

it.each(Object.entries(HOSTILE_ANSWERS))(
  'a public name is of no use when it resolves to another host: %s',
  async (name, answers) => {
    const attempts = watchConnections();
    const asked = resolveAs(HOSTILE_ANSWERS);
    // Whoever had judged the name before would have seen the public address.
    for (let look = 1; look < answers.length; look += 1) dns.lookup(name, { all: true }, () => undefined);
    expect(await sendTo(uploads(), `https://${name}:${trap.port}/a.pdf`)).toBe('rejected');
    expect([attempts, asked.get(name), trap.connections()]).toEqual([[], answers.length, 0]);
  },
);

it('a name is resolved once, and the connection goes to the address that was judged', async () => {
  const store = createHttpServer((request, response) => request.resume().once('end', () => response.end()));
  servers.push(store.listen(0, '127.0.0.1'));
  await once(store, 'listening');
  const attempts = watchConnections();
  const asked = resolveAs({ 'store.example.com': [['127.0.0.1'], ['169.254.169.254']] });
  const stream = uploads({ PRIVATE_HOSTS_ALLOWED: 'true' });
  const url = `http://store.example.com:${(store.address() as AddressInfo).port}/a.pdf`;
  expect(await sendTo(stream, url)).toBe('sent');
  expect([attempts, asked.get('store.example.com')]).toEqual([['127.0.0.1'], 1]);
  expect(await sendTo(stream, url)).toBe('rejected');
  expect(attempts).toEqual(['127.0.0.1']);
});

it.each([301, 302, 303, 307, 308])('a redirect of %i is not followed', async (status) => {
  const store = createHttpServer((_request, response) => {
    response.writeHead(status, { location: `http://127.0.0.1:${trap.port}/` }).end();
  });
  servers.push(store.listen(0, '127.0.0.1'));
  await once(store, 'listening');
  const url = `http://127.0.0.1:${(store.address() as AddressInfo).port}/a.pdf`;
  expect(await sendTo(uploads({ PRIVATE_HOSTS_ALLOWED: 'true' }), url)).toBe('rejected');
  expect(trap.connections()).toBe(0);
});

describe('over HTTP', () => {
  const newMirror = useMirrors();
  let mirror: Mirror;
  let service: Service;

  beforeAll(async () => {
    const env = {
      PRIVATE_HOSTS_ALLOWED: 'false',
      PLATFORM_PARTNER_DOMAIN: 'recorder.example.com',
      REDIRECT_ALLOWED_ORIGINS: 'https://ehr.example.com',
    };
    mirror = await newMirror({ env });
    service = await mirror.start();
  });

  /** Every URL is refused for itself: at the field that holds it, not for the people beside it. */
  const statusesOf = async (path: string, pointer: string, bodyOf: (url: string) => object, given = urls) => {
    const statuses = new Set<number>();
    await atOnce(given, async (url) => {
      const { status, body } = await service.call<{ pointer?: string }>('POST', path, { body: bodyOf(url) });
      expect([url, body.pointer]).toEqual([url, pointer]);
      statuses.add(status);
    });
    return [...statuses].sort();
  };

  it('none is taken as a file of a compliance job', async () => {
    expect(await statusesOf('/v1/compliance/jobs', '/files/0/url', (url) => ({ files: [{ id: 'a', url }] }))).toEqual([
      400, 422,
    ]);
    expect([mirror.arrivals('submitComplianceJob'), trap.connections()]).toEqual([0, 0]);
  });

  it('none is taken as a recording of a session, also beside a good one', async () => {
    const good = 'https://files.example.com/1.wav';
    const session = (recordingUrls: string[]) => ({
      provider: 'p-1',
      noteTemplateIds: ['11111111-1111-4111-8111-111111111111'],
      input: { recording: { recordingUrls, recordingContent: 'Recording' } },
    });
    const beside = (url: string) => session([good, url]);
    expect(await statusesOf('/v1/sessions', '/input/recording/recordingUrls/1', beside)).toEqual([422]);
    const some = urls.filter((_, at) => at % 10 === 0);
    const alone = (url: string) => session([url]);
    expect(await statusesOf('/v1/sessions', '/input/recording/recordingUrls/0', alone, some)).toEqual([422]);
    expect([mirror.arrivals('createSession'), trap.connections()]).toEqual([0, 0]);
  });

  it('none is taken as a redirect of the recorder', async () => {
    const launch = (redirectUrl: string) => ({ provider: 'p-1', client: 'c-1', variant: 'virtual', redirectUrl });
    expect(await statusesOf('/v1/recorder/launches', '/redirectUrl', launch)).toEqual([422]);
    expect([mirror.arrivals('initiateAuth'), trap.connections()]).toEqual([0, 0]);
  });

  it('nothing is sent to one that the platform itself hands out', async () => {
    const { state } = mirror.simulator;
    const bases = urls.filter((url) => url.endsWith('/a.pdf') && URL.canParse(url)).map((url) => new URL(url).origin);
    const left = [...new Set(bases)];
    const prepare = state.uploads.prepare.bind(state.uploads);
    jest.spyOn(state.uploads, 'prepare').mockImplementation((...what) => {
      state.publicUrl = left.shift() ?? `http://127.0.0.1:${trap.port}`;
      return prepare(...what);
    });
    const headers = { authorization: 'Bearer admin-key-of-the-notebridge-tests' };
    await atOnce([...left], async () => {
      const { status } = await answerTo(`${service.url}/v1/recordings`, { method: 'POST', headers, body: 'sound' });
      expect(status).toBe(502);
    });
    expect(left).toEqual([]);
    expect(trap.connections()).toBe(0);
  });
});
