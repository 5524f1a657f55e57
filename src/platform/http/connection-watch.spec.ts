import type { ClientRequest } from 'node:http';
import { Agent } from 'node:http';
import { urlToHttpOptions } from 'node:url';
import { LoopbackPlatform } from '../clients/loopback-platform.spec-support.js';
import { ConnectionWatch } from './connections.js';

/** Makes one request. @returns how often the connection was reported ready, and how the request ended */
async function exchange(
  url: string,
  options: object,
): Promise<{ ready: number; watched: boolean; reused: boolean; end: string }> {
  let ready = 0;
  const watch = new ConnectionWatch(() => {
    ready += 1;
  });
  let request: ClientRequest | undefined;
  const end = await new Promise<string>((resolve) => {
    request = watch.request({ ...urlToHttpOptions(new URL(url)), ...options }, (response) => {
      response.resume().once('end', () => resolve('answered'));
    });
    request.once('error', () => resolve('failed')).end();
  });
  return { ready, watched: watch.ready, reused: request?.reusedSocket ?? false, end };
}

describe('the watch over a connection', () => {
  let plain: LoopbackPlatform;
  let secure: LoopbackPlatform;

  beforeAll(async () => {
    plain = await LoopbackPlatform.start();
    plain.keepConnections();
    secure = await LoopbackPlatform.start({ tls: true });
  });
  afterAll(() => Promise.all([plain.stop(), secure.stop()]));

  it('is ready once, over a new and over a kept connection', async () => {
    const agent = new Agent({ keepAlive: true });
    expect(await exchange(plain.url, { agent })).toEqual({ ready: 1, watched: true, reused: false, end: 'answered' });
    expect(await exchange(plain.url, { agent })).toEqual({ ready: 1, watched: true, reused: true, end: 'answered' });
    agent.destroy();
  });

  it('is ready over https after the handshake', async () => {
    const options = { agent: false, rejectUnauthorized: false };
    expect(await exchange(secure.url, options)).toEqual({ ready: 1, watched: true, reused: false, end: 'answered' });
  });

  it('is never ready if the certificate is not trusted, and nothing arrives', async () => {
    const before = secure.heard.length;
    expect(await exchange(secure.url, { agent: false })).toMatchObject({ ready: 0, watched: false, end: 'failed' });
    expect(secure.heard).toHaveLength(before);
  });

  it('ends a request that is answered in another protocol', async () => {
    plain.answer = (_request, response) =>
      void response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end();
    expect(await exchange(plain.url, { agent: false })).toMatchObject({ watched: true, end: 'failed' });
  });
});
