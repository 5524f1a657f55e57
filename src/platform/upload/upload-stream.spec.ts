import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { inspect } from 'node:util';
import { Clock } from '../../config/clock.js';
import { API_KEY, LoopbackPlatform, stopTimeouts, testEnv } from '../clients/loopback-platform.spec-support.js';
import { UploadSourceError, UploadStream } from './upload-stream.js';

const KIB = 1024;
const file = (bytes: number) => Readable.from([Buffer.alloc(bytes, 'a')]);
const options = (contentLength: number) => ({
  contentLength,
  method: 'PUT' as const,
  headers: { 'content-type': 'audio/webm' },
});

describe('sending a file to an upload address', () => {
  let store: LoopbackPlatform;
  let upload: UploadStream;

  stopTimeouts();
  beforeEach(async () => {
    store = await LoopbackPlatform.start();
    store.answer = (_request, response: ServerResponse) => response.writeHead(200).end();
    upload = new UploadStream(testEnv(store.url), new Clock());
  });
  afterEach(() => store.stop());

  it('sends exactly the bytes with their length and type, and no API key', async () => {
    await upload.uploadTo(`${store.url}/put?sig=1`, file(5), {
      ...options(5),
      headers: { 'content-type': 'audio/webm', 'x-more': '1' },
    });
    expect(store.heard).toEqual([expect.objectContaining({ method: 'PUT', url: '/put?sig=1', body: 'aaaaa' })]);
    expect(store.heard[0]?.headers).toMatchObject({
      'content-length': '5',
      'content-type': 'audio/webm',
      'x-more': '1',
    });
    expect(store.heard[0]?.headers).not.toHaveProperty('transfer-encoding');
    expect(inspect(store.heard)).not.toContain(API_KEY);
  });

  it('sends an empty file', async () => {
    await upload.uploadTo(store.url, Readable.from([]), options(0));
    expect(store.heard[0]?.headers['content-length']).toBe('0');
  });

  it.each([
    [4, 5],
    [6, 5],
  ])('blames the source if it has %i of %i bytes', async (bytes, said) => {
    await expect(upload.uploadTo(store.url, file(bytes), options(said))).rejects.toBeInstanceOf(UploadSourceError);
    expect(store.heard).toEqual([]);
  });

  it('blames the source if it ends early', async () => {
    const failing = new PassThrough();
    const failed = upload.uploadTo(store.url, failing, options(100));
    failing.write('begun');
    failing.destroy(new Error('gone'));
    await expect(failed).rejects.toBeInstanceOf(UploadSourceError);
    const closed = new PassThrough();
    const cut = upload.uploadTo(store.url, closed, options(100));
    closed.destroy();
    await expect(cut).rejects.toBeInstanceOf(UploadSourceError);
  });

  it.each([
    [400, 'rejected'],
    [403, 'rejected'],
    [404, 'rejected'],
    [302, 'rejected'],
    [429, 'rate-limited'],
    [503, 'unknown-outcome'],
  ])('an answer of %i is %s', async (status, kind) => {
    store.answer = (_request, response) =>
      response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end('<Error/>');
    await expect(upload.uploadTo(store.url, file(5), options(5))).rejects.toMatchObject({
      kind,
      status,
      operation: 'upload',
    });
    expect(store.heard).toHaveLength(1);
  });

  it('fails if the store answers with another protocol', async () => {
    store.answer = (_request, response) =>
      void response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end();
    const sent = file(5);
    await expect(upload.uploadTo(store.url, sent, options(5))).rejects.toMatchObject({ kind: 'unknown-outcome' });
    expect(sent.destroyed).toBe(true);
  });

  it('stops sending if the store rejects early', async () => {
    const early: Server = createServer((_request, response) => response.writeHead(403).end('no'));
    await new Promise<void>((resolve) => early.listen(0, '127.0.0.1', resolve));
    let produced = 0;
    const endless = new Readable({
      read() {
        produced += 64 * KIB;
        this.push(Buffer.alloc(64 * KIB));
      },
    });
    const url = `http://127.0.0.1:${(early.address() as AddressInfo).port}`;
    await expect(upload.uploadTo(url, endless, options(1e12))).rejects.toMatchObject({ kind: 'rejected', status: 403 });
    expect(endless.destroyed).toBe(true);
    expect(produced).toBeLessThan(1e9);
    early.close();
  });

  it('pauses the source while the store does not read', async () => {
    const slow: Server = createServer((request) => request.pause());
    await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve));
    let produced = 0;
    const large = new Readable({
      read() {
        produced += 64 * KIB;
        this.push(Buffer.alloc(64 * KIB));
      },
    });
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
    const stuck = upload.uploadTo(url, large, { ...options(1e12), idleMs: 300 });
    await expect(stuck).rejects.toMatchObject({
      kind: 'unknown-outcome',
      message: expect.stringContaining('ECONNABORTED'),
    });
    // At most as much as the kernel's buffers of both ends hold.
    expect(produced).toBeLessThan(32 * KIB * KIB);
    slow.closeAllConnections();
    slow.close();
  });

  it('stops on abort', async () => {
    const stop = new AbortController();
    const source = new PassThrough();
    const stopped = upload.uploadTo(store.url, source, { ...options(100), signal: stop.signal });
    source.write('begun', () => setImmediate(() => stop.abort()));
    await expect(stopped).rejects.toMatchObject({ operation: 'upload' });
    expect(source.destroyed).toBe(true);
  });

  it('is unreachable if no server listens', async () => {
    await store.stop();
    await expect(upload.uploadTo(store.url, file(5), options(5))).rejects.toMatchObject({ kind: 'unreachable' });
  });

  it('connects to a private address only if that is allowed', async () => {
    const guarded = new UploadStream(testEnv('https://platform.example'), new Clock());
    const source = file(5);
    await expect(guarded.uploadTo(`${store.url}/secret`, source, options(5))).rejects.toMatchObject({
      kind: 'rejected',
    });
    expect(source.destroyed).toBe(true);
    expect(store.connections).toBe(0);
  });

  it('fails without showing the URL or its signature', async () => {
    store.answer = (_request, response) => response.writeHead(500).end('sig=hush');
    const error: unknown = await upload
      .uploadTo(`${store.url}/jane?sig=hush`, file(5), options(5))
      .catch((thrown: unknown) => thrown);
    expect(inspect(error, { depth: 9, getters: true }) + JSON.stringify(error)).not.toMatch(/hush|jane|127\.0\.0\.1/);
  });
});
