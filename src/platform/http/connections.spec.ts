import { LoopbackPlatform } from '../clients/loopback-platform.spec-support.js';
import { Attempt, type Ways, waysOf } from './connections.js';

const DIRECT = { NO_PROXY: [] };

/** Makes one request. @returns whether its connection was ready, and how it ended */
async function attemptOf(ways: Ways, url: string) {
  const attempt = new Attempt(ways, new AbortController().signal);
  const end = await attempt.send({ url }).then(
    async ({ data }) => {
      await data.resume().toArray();
      return 'answered';
    },
    () => 'failed',
  );
  return { isReady: attempt.isReady, isReused: attempt.isReused, end };
}

describe('the connection of an attempt', () => {
  let plain: LoopbackPlatform;
  let secure: LoopbackPlatform;

  beforeAll(async () => {
    plain = await LoopbackPlatform.start();
    plain.keepConnections();
    secure = await LoopbackPlatform.start({ tls: true });
  });
  afterAll(() => Promise.all([plain.stop(), secure.stop()]));

  it('is ready if it is new and if it is reused', async () => {
    const ways = waysOf(DIRECT, { keepAlive: true });
    const ready = { isReady: true, end: 'answered' };
    expect(await attemptOf(ways, plain.url)).toEqual({ ...ready, isReused: false });
    expect(await attemptOf(ways, plain.url)).toEqual({ ...ready, isReused: true });
    ways.httpAgent.destroy();
  });

  it('is ready over https after the handshake', async () => {
    const ways = waysOf(DIRECT, { rejectUnauthorized: false });
    expect(await attemptOf(ways, secure.url)).toMatchObject({ isReady: true, end: 'answered' });
  });

  it('is never ready if the certificate is not trusted, and nothing arrives', async () => {
    const before = secure.heard.length;
    const ways = waysOf(DIRECT);
    expect(await attemptOf(ways, secure.url)).toMatchObject({ isReady: false, end: 'failed' });
    expect(secure.heard).toHaveLength(before);
  });

  it('ends a request that is answered in another protocol', async () => {
    plain.answer = (_request, response) =>
      void response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end();
    const ways = waysOf(DIRECT);
    expect(await attemptOf(ways, plain.url)).toMatchObject({ isReady: true, end: 'failed' });
  });
});
