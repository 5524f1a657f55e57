import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { answerTo, beginUpload, writeBytes } from '../../bench/big-upload.js';
import type { CallOptions } from '../../harness/world/request.js';
import { ADMIN_KEY } from '../../harness/world/settings.js';
import type { UploadAddressResponse } from '../../src/platform/clients/upload-address.dto.js';
import { contractFile } from '../support/contract-file.js';
import { useWorld } from '../world/use-world.js';

const MB = 1_000_000;
const world = useWorld();

const send = (body: string | Buffer, { headers, ...more }: CallOptions = {}) => {
  const options = { body: Buffer.from(body), headers: { 'content-type': 'audio/wav', ...headers }, ...more };
  return world.call<{ type: string }>('POST', '/v1/recordings', options);
};
const begin = (length: number) =>
  beginUpload(`${world.url}/v1/recordings`, length, { authorization: `Bearer ${ADMIN_KEY}` });
const askForUrl = (body: object) => world.call<UploadAddressResponse>('POST', '/v1/recordings/upload-url', { body });
const uploads = () => world.platform.simulator.state.uploads.list();

describe('a recording', () => {
  test('reaches the store byte by byte and is answered with its URL', async () => {
    const sound = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7) % 251));
    const { status, body } = await send(sound);
    const [upload] = uploads();
    expect([status, body]).toEqual([201, { url: `${world.platform.url}/files/${upload?.id}`, bytes: sound.length }]);
    const sha256 = createHash('sha256').update(sound).digest('hex');
    expect(upload).toMatchObject({ bytes: sound.length, sha256, attempts: 1 });
  });

  test('gets a random file name in place of the sender’s', async () => {
    await send('sound', { headers: { 'content-disposition': 'attachment; filename="Jane Roe.wav"' } });
    expect(uploads()[0]?.fileName).toMatch(/^[0-9a-f-]{36}\.wav$/);
  });

  test('is rejected if it is compressed', async () => {
    expect((await send('sound', { headers: { 'content-encoding': 'gzip' } })).status).toBe(415);
    expect(uploads()).toEqual([]);
  });

  test('can be sent again after the store cuts it off (502)', async () => {
    world.platform.set({ breakUploadsAfterBytes: 1_000 });
    const broken = await send(Buffer.alloc(30 * MB));
    expect([broken.status, broken.body.type]).toEqual([502, 'urn:notebridge:problem:upload-failed']);
    expect(uploads()[0]?.sha256).toBeNull();
    world.platform.set({ breakUploadsAfterBytes: 0 });
    expect((await send(Buffer.alloc(200_000))).status).toBe(201);
  });

  test('is answered 502 if the store rejects it', async () => {
    world.platform.set({ uploadContentType: 'audio/other' });
    const { status, body } = await send('sound');
    expect([status, body.type]).toEqual([502, 'urn:notebridge:problem:upload-refused']);
  });

  test('never arrives whole if its sender disconnects, and can be sent again', async () => {
    const sending = begin(2 * MB);
    sending.on('error', () => undefined);
    await writeBytes(sending, MB);
    await world.eventually('the store has the first half', () => (uploads()[0]?.bytes ?? 0) > 0);
    sending.destroy();
    await world.eventually('the audit log has the outcome', async () => {
      const rows = await world.sql(`SELECT 1 FROM audit_entries WHERE outcome = 'upload-broken-off'`);
      return rows.length > 0;
    });
    expect(uploads()[0]?.sha256).toBeNull();
    expect((await send('sound')).status).toBe(201);
  });

  describe('at a store that does not read', () => {
    const store = createServer();
    beforeAll(() => once(store.listen(0, '127.0.0.1'), 'listening'));
    afterAll(() => {
      store.closeAllConnections();
      store.close();
    });

    test('waits at its sender', async () => {
      const length = 96 * MB;
      const asked = once(store, 'request');
      const { state } = world.platform.simulator;
      const platformUrl = state.publicUrl;
      state.publicUrl = `http://127.0.0.1:${(store.address() as AddressInfo).port}`;
      const sending = begin(length);
      const answer = answerTo(sending);
      let written = 0;
      const writing = writeBytes(sending, length, (bytes) => {
        written = bytes;
      });
      const [incoming, response] = await asked;
      state.publicUrl = platformUrl;
      // A service that reads on has all of it long before.
      await Promise.race([writing, delay(1_000)]);
      expect(written).toBeLessThan(32 * MB);

      let received = 0;
      for await (const chunk of incoming) received += chunk.length;
      response.end();
      await writing;
      sending.end();
      expect([(await answer).status, received]).toEqual([201, length]);
    });
  });

  test('is sent once per Idempotency-Key; another length with the same key is rejected', async () => {
    const first = await send('sound', { idempotencyKey: 'recording-1' });
    const again = await send('sound', { idempotencyKey: 'recording-1' });
    expect([again.status, again.body, again.headers.get('idempotent-replayed')]).toEqual([201, first.body, 'true']);
    expect((await send('longer sound', { idempotencyKey: 'recording-1' })).status).toBe(422);
    expect(uploads()).toHaveLength(1);
  });

  test.each([
    ['rate-limit', 503, 'platform-rate-limited'],
    ['forbid', 503, 'platform-unauthorized'],
    ['bad-json', 504, 'platform-unclear'],
  ] as const)('platform fault %s: answered %i %s', async (kind, status, type) => {
    world.platform.injectFault({ operation: 'recordingUploadUrl', kind });
    const answer = await send('sound');
    expect([answer.status, answer.body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
  });
});

describe('an upload URL', () => {
  test('comes with the method and headers to use', async () => {
    const { status, headers, body } = await askForUrl({ contentType: 'audio/mpeg', size: 5 });
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store']);
    const [upload] = uploads();
    expect(upload?.fileName).toMatch(/^[0-9a-f-]{36}\.mp3$/);
    expect(body).toEqual({
      uploadUrl: `${world.platform.url}/uploads/${upload?.id}?token=${upload?.token}`,
      url: `${world.platform.url}/files/${upload?.id}`,
      method: 'PUT',
      headers: { 'content-type': 'audio/mpeg' },
    });
    const sent = await fetch(body.uploadUrl, { method: body.method, headers: body.headers, body: 'sound' });
    expect(sent.status).toBe(200);
  });

  test.each(['http://169.254.169.254', 'ftp://files.example.org', 'https://name:secret@files.example.org'])(
    'at %s is not handed out',
    async (address) => {
      const { state } = world.platform.simulator;
      const { publicUrl } = state;
      state.publicUrl = address;
      const answers = [
        await askForUrl({ size: 5 }),
        await world.call('POST', '/v1/compliance/upload-url', { body: { size: 5 } }),
        await send('sound'),
      ];
      state.publicUrl = publicUrl;
      expect(answers.map(({ status }) => status)).toEqual([504, 504, 504]);
      expect(answers.map(({ body }) => body)).toEqual(
        answers.map(() => expect.objectContaining({ type: 'urn:notebridge:problem:platform-unclear' })),
      );
      expect(await world.sql('SELECT FROM handed_out_urls')).toEqual([]);
    },
  );

  test.each([
    ['no Content-Type', null, 'none'],
    ['another Content-Type', 'audio/x-signed', 'audio/x-signed'],
  ])('%s in the contract wins, streamed or uploaded directly', async (_rule, contentType, uploadContentType) => {
    const upload = { method: 'PUT', headers: { 'content-type': contentType } };
    await world.restart({ PLATFORM_CONTRACT: contractFile([], { recordingUploadUrl: { upload } }) });
    world.platform.set({ uploadContentType });
    const streamed = await send('sound');
    const { body } = await askForUrl({ contentType: 'audio/wav' });
    const bytes = Buffer.from('sound'); // unlike a string, fetch gives it no type
    const direct = await fetch(body.uploadUrl, { method: body.method, headers: body.headers, body: bytes });
    expect([streamed.status, direct.status]).toEqual([201, 200]);
  });

  test.each([
    ['without any field', {}, 201],
    ['with a contentType that is not text', { contentType: 7 }, 400],
    ['with a fractional size', { size: 1.5 }, 400],
    ['with size 0', { size: 0 }, 400],
    ['with an unknown field', { fileName: 'Jane Roe.wav' }, 400],
  ])('asked for %s', async (_rule, body, status) => {
    expect((await askForUrl(body)).status).toBe(status);
  });
});
