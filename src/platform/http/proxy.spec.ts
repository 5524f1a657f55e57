import { once } from 'node:events';
import { createServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo, LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { inspect } from 'node:util';
import { SELF_SIGNED } from '../../../harness/self-signed.js';
import { Clock } from '../../config/clock.js';
import { httpTo, stopTimeouts, testEnv } from '../clients/loopback-platform.spec-support.js';
import type { PlatformError } from '../contract/platform-errors.js';
import { UploadStream } from '../upload/upload-stream.js';
import { ConnectProxy } from './connect-proxy.spec-support.js';
import { attemptWithin, waysOf } from './connections.js';
import { proxyFor } from './proxy.js';

const failureOf = (call: Promise<unknown>): Promise<PlatformError> =>
  call.then(
    () => {
      throw new Error('The call succeeded.');
    },
    (error: PlatformError) => error,
  );

describe('NO_PROXY', () => {
  const isProxied = (url: string, exceptions: string) =>
    proxyFor(new URL(url), { HTTPS_PROXY: 'http://proxy.example:3128', NO_PROXY: exceptions.split(',') }) !== undefined;

  it.each<[host: string, exceptions: string, isProxied: boolean]>([
    ['api.platform.example', '', true],
    ['api.platform.example', '*', false],
    ['api.platform.example', 'platform.example', false],
    ['api.platform.example', '.platform.example', false],
    ['api.platform.example', '*.platform.example', false],
    ['API.Platform.Example', 'api.PLATFORM.example', false],
    ['notplatform.example', 'platform.example', true],
    ['api.platform.example', 'platform.example:443', false],
    ['api.platform.example', 'platform.example:8443', true],
    ['10.1.2.3', '10.1.2.3', false],
    ['[2001:db8::1]', '[2001:db8::1]:443', false],
    ['localhost', '', false],
    ['127.0.0.1', '', false],
    ['[::1]', '', false],
  ])('%s with "%s": proxied is %s', (host, exceptions, expected) => {
    expect(isProxied(`https://${host}/path`, exceptions)).toBe(expected);
  });

  it('is without effect over http, and if there is no proxy', () => {
    expect(isProxied('http://api.platform.example', '')).toBe(false);
    expect(proxyFor(new URL('https://api.platform.example'), { NO_PROXY: [] })).toBeUndefined();
  });
});

test('the proxy may also be set in lower case, and without a scheme', () => {
  const env = testEnv('https://platform.example', {
    https_proxy: 'proxy.example:3128',
    no_proxy: 'a.example, b.example',
  });
  expect(env).toMatchObject({ HTTPS_PROXY: 'http://proxy.example:3128', NO_PROXY: ['a.example', 'b.example'] });
});

test('a start with a proxy of another kind fails without showing its password', () => {
  const start = () => testEnv('https://platform.example', { HTTPS_PROXY: 'socks5://user:hunter2@proxy.example' });
  expect(start).toThrow(/HTTPS_PROXY must be the http:\/\/ or https:\/\/ address of a proxy/);
  expect(start).not.toThrow(/hunter2/);
});

describe('a call through a proxy', () => {
  let platform: TlsServer;
  let proxy: ConnectProxy;
  let heard: number;
  const proxies = () => ({ HTTPS_PROXY: proxy.url.replace('//', '//user:hunter%40@'), NO_PROXY: [] });

  stopTimeouts();
  beforeEach(async () => {
    heard = 0;
    platform = createServer(SELF_SIGNED, (_request, response) => {
      heard += 1;
      response.end('{}');
    }).on('tlsClientError', () => undefined);
    platform.listen(0, '127.0.0.1');
    await once(platform, 'listening');
    proxy = await ConnectProxy.start((platform.address() as AddressInfo).port);
  });
  afterEach(async () => {
    await proxy.stop();
    await new Promise((resolve) => platform.close(resolve));
  });

  /** Sends one request to a host whose certificate must be for `servername`. */
  async function send(host: string, options: Parameters<typeof waysOf>[1] = {}) {
    const ways = waysOf(proxies(), { keepAlive: false, ca: SELF_SIGNED.cert, ...options });
    return attemptWithin(ways, new Clock(), 'checkUser', { connectMs: 2_000 }, async (attempt) => {
      const { status, data } = await attempt.send({ url: `https://${host}:8443/` });
      data.resume();
      return status;
    });
  }

  it('reaches the platform over TLS, with the credentials of the proxy', async () => {
    expect(await send('platform.example', { servername: 'localhost' })).toBe(200);
    const headers = expect.objectContaining({
      'proxy-authorization': `Basic ${Buffer.from('user:hunter@').toString('base64')}`,
    });
    expect(proxy.asked).toEqual([{ authority: 'platform.example:8443', headers }]);
  });

  it('is refused if the certificate is for another host, and nothing is sent', async () => {
    const error = await failureOf(send('platform.example'));
    expect(error).toMatchObject({ kind: 'unreachable' });
    expect(error.message).toContain('(ERR_TLS_CERT_ALTNAME_INVALID through the proxy in HTTPS_PROXY)');
    expect([proxy.asked.length, heard]).toEqual([1, 0]);
  });

  it.each([407, 403, 502])('is unreachable if the proxy answers %i, with the proxy as its cause', async (status) => {
    proxy.answer = status;
    const client = httpTo('https://platform.example', undefined, { HTTPS_PROXY: proxies().HTTPS_PROXY });
    const body = { firstName: 'a', lastName: 'b', email: 'c@d.example' };
    const error = await failureOf(client.call({ operation: 'createProvider', body }, (answer) => answer));
    expect(error).toMatchObject({ kind: 'unreachable' });
    expect(error.message).toContain(`(${status} to CONNECT through the proxy in HTTPS_PROXY). Nothing was sent.`);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/hunter/);
    expect(heard).toBe(0);
  });

  it('is unreachable if no proxy listens', async () => {
    await proxy.stop();
    const error = await failureOf(send('platform.example'));
    expect(error).toMatchObject({ kind: 'unreachable' });
    expect(error.message).toContain('(ECONNREFUSED through the proxy in HTTPS_PROXY)');
  });

  it('ends at the limit for connecting while the proxy is silent, and closes that connection', async () => {
    proxy.answer = 'never';
    const call = failureOf(send('platform.example'));
    while (proxy.asked.length === 0) await turnOfLoop();
    const [socket] = proxy.sockets;
    const closed = new Promise((resolve) => socket?.resume().once('end', resolve));
    jest.advanceTimersByTime(2_000);
    const error = await call;
    expect(error).toMatchObject({ kind: 'unreachable' });
    expect(error.message).toContain('(connect timeout through the proxy in HTTPS_PROXY)');
    await closed;
  });

  it('goes to the proxy over TLS if that is asked for, which needs a trusted certificate', async () => {
    const port = (platform.address() as AddressInfo).port;
    const client = httpTo('https://platform.example', undefined, { HTTPS_PROXY: `https://localhost:${port}` });
    const error = await failureOf(client.call({ operation: 'deleteUser', parameters: { userId: 'u' } }, () => 0));
    expect(error).toMatchObject({ kind: 'unreachable' });
    expect(error.message).toContain('DEPTH_ZERO_SELF_SIGNED_CERT');
  });

  describe('of an upload', () => {
    const uploadTo = (url: string) => {
      const env = testEnv('https://platform.example', { HTTPS_PROXY: proxies().HTTPS_PROXY });
      const file = Readable.from([Buffer.from('x')]);
      return failureOf(
        new UploadStream(env, new Clock()).uploadTo(url, file, { contentLength: 1, method: 'PUT', headers: {} }),
      );
    };

    it('asks the proxy for a host that only the proxy can resolve', async () => {
      const error = await uploadTo('https://store.does-not-exist.example/put');
      expect(error).toMatchObject({ kind: 'unreachable' });
      expect(error.message).toContain('through the proxy in HTTPS_PROXY');
      expect(proxy.asked.map(({ authority }) => authority)).toEqual(['store.does-not-exist.example:443']);
    });
  });

  it('is not made for a host whose addresses here are refused', async () => {
    const refusal = Object.assign(new Error('no'), { code: 'ADDRESS_NOT_PUBLIC' });
    const lookup: LookupFunction = (_host, _options, done) => done(refusal, '');
    const error = await failureOf(send('inside.example', { lookup }));
    expect(error).toMatchObject({ kind: 'unreachable' });
    expect(error.message).toContain('ADDRESS_NOT_PUBLIC');
    expect(proxy.asked).toEqual([]);
  });
});
