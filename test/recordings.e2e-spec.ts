import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { answerTo, beginUpload, peakMbDuring, residentMb, uploadBytes, writeBytes } from '../bench/big-upload.js';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { RecordingUploadResponse } from '../src/recordings/recordings.dto.js';
import { ADMIN_KEY } from './support/app.js';
import { contractFile } from './support/contract-file.js';
import { type Mirror, useMirrors } from './support/service.js';

interface ProblemBody {
  type: string;
  missing?: string[];
}

const MB = 1_000_000;
const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;
let platformUrl: string;

beforeAll(async () => {
  mirror = await newMirror({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
  service = await mirror.start();
  platformUrl = mirror.simulator.state.publicUrl;
});
afterEach(() => {
  mirror.simulator.state.settings = { ...mirror.simulator.state.settings, breakUploadsAfterBytes: 0 };
  mirror.simulator.state.publicUrl = platformUrl;
  mirror.simulator.state.faults.clear();
});

const headers = (more: Record<string, string> = {}) => ({ authorization: `Bearer ${ADMIN_KEY}`, ...more });
const send = async (body: string | Uint8Array<ArrayBuffer>, more: Record<string, string> = {}, to = service) => {
  const init = { method: 'POST', headers: headers({ 'content-type': 'audio/wav', ...more }), body };
  // Again while a slow machine's database is late for it, as a caller should.
  return until('the recording is answered for good', async () => {
    const response = await fetch(`${to.url}/v1/recordings`, init);
    const answer = (await response.json()) as ProblemBody;
    if (/:(database|audit)-unavailable$/.test(answer.type)) return undefined;
    return { status: response.status, headers: response.headers, body: answer };
  });
};
const uploads = () => mirror.simulator.state.uploads.list();
const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');

describe('a recording', () => {
  it('reaches the store byte by byte and is answered with its URL', async () => {
    const sound = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7) % 251));
    const answer = await send(sound);
    expect(answer.status).toBe(201);
    const upload = uploads().at(-1);
    expect(answer.body).toEqual({ url: `${platformUrl}/files/${upload?.id}`, bytes: sound.length });
    expect(upload).toMatchObject({ bytes: sound.length, sha256: sha256(sound), attempts: 1 });
  });

  it('has a name that says nothing of anybody', async () => {
    await send('sound', { 'content-disposition': 'attachment; filename="Jane Roe.wav"' });
    expect(uploads().at(-1)?.fileName).toMatch(/^[0-9a-f-]{36}\.wav$/);
  });

  it('411: without Content-Length', async () => {
    const sending = request(`${service.url}/v1/recordings`, {
      method: 'POST',
      headers: headers({ 'transfer-encoding': 'chunked' }),
    });
    sending.end('sound');
    const answer = await answerTo(sending);
    expect([answer.status, JSON.parse(answer.body).type]).toEqual([411, 'urn:notebridge:problem:length-required']);
  });

  it.each([
    ['400: empty', '', {}, 400],
    ['415: compressed', 'sound', { 'content-encoding': 'gzip' }, 415],
    ['415: a form', 'sound', { 'content-type': 'multipart/form-data; boundary=x' }, 415],
  ])('%s', async (_rule, body, more, status) => {
    expect((await send(body, more)).status).toBe(status);
  });

  it('that the store cuts off is reported as broken and can be sent again', async () => {
    mirror.simulator.state.settings = { ...mirror.simulator.state.settings, breakUploadsAfterBytes: 1_000 };
    const broken = await send(Buffer.alloc(30 * MB));
    expect([broken.status, broken.body.type]).toEqual([502, 'urn:notebridge:problem:upload-failed']);
    expect(uploads().at(-1)?.sha256).toBeNull();
    mirror.simulator.state.settings = { ...mirror.simulator.state.settings, breakUploadsAfterBytes: 0 };
    expect((await send(Buffer.alloc(200_000))).status).toBe(201);
  });

  it('that the store refuses is reported so', async () => {
    const before = mirror.simulator.state.settings;
    mirror.simulator.state.settings = { ...before, uploadUrlSeconds: 1e-9 };
    const refused = await send('sound');
    mirror.simulator.state.settings = before;
    expect([refused.status, refused.body.type]).toEqual([502, 'urn:notebridge:problem:upload-refused']);
  });

  it('that its sender breaks off reaches nobody whole, and can be sent again', async () => {
    const count = uploads().length;
    const sending = beginUpload(`${service.url}/v1/recordings`, 2 * MB, headers());
    sending.on('error', () => undefined);
    await writeBytes(sending, MB);
    await until('half of it is at the store', () => (uploads()[count]?.bytes ?? 0) > 0);
    sending.destroy();
    await until('the trail has it as broken off', async () => {
      const trail = await service.call<{ items: { outcome: string }[] }>(
        'GET',
        '/v1/audit?action=POST%20/v1/recordings&limit=1',
      );
      return trail.body.items[0]?.outcome === 'upload-broken-off';
    });
    expect(uploads()[count]?.sha256).toBeNull();
    expect((await send('sound')).status).toBe(201);
  });

  it('is sent at the pace of the store: what the store does not take stays with the sender', async () => {
    const length = 96 * MB;
    let received = 0;
    let take: (() => void) | undefined;
    const store: Server = createServer((incoming, response) => {
      take = () => {
        incoming.on('data', (chunk: Buffer) => {
          received += chunk.length;
        });
        incoming.once('end', () => response.end());
      };
    }).listen(0, '127.0.0.1');
    await once(store, 'listening');
    mirror.simulator.state.publicUrl = `http://127.0.0.1:${(store.address() as AddressInfo).port}`;
    const idle = await residentMb(service.pid);
    let written = 0;
    const sending = beginUpload(`${service.url}/v1/recordings`, length, headers());
    const answer = answerTo(sending);
    const writing = writeBytes(sending, length, (bytes) => {
      written = bytes;
    });
    await until('the store was asked', () => take);
    let last = -1;
    await until('nothing moves any more', async () => {
      const before = last;
      last = written;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return written > 0 && written === before;
    });
    expect(written).toBeLessThan(32 * MB);
    expect((await residentMb(service.pid)) - idle).toBeLessThan(length / MB);
    take?.();
    await writing;
    sending.end();
    expect((await answer).status).toBe(201);
    expect(received).toBe(length);
    store.close();
  });

  it('of 300 MB keeps the service under 150 MB above idle', async () => {
    await send('sound');
    const idle = await residentMb(service.pid);
    const length = 300 * MB;
    const { peakMb, result } = await peakMbDuring(
      service.pid,
      uploadBytes(`${service.url}/v1/recordings`, length, headers()),
    );
    expect(result.status).toBe(201);
    expect(uploads().at(-1)).toMatchObject({ bytes: length, sha256: expect.any(String) });
    expect(peakMb - idle).toBeLessThan(150);
  });

  it('is sent once under one Idempotency-Key; another body under it is 422', async () => {
    const key = { 'idempotency-key': 'recording-1' };
    const first = await send('sound', key);
    const count = uploads().length;
    const again = await send('sound', key);
    expect([again.status, again.body, again.headers.get('idempotent-replayed')]).toEqual([201, first.body, 'true']);
    expect((await send('other', key)).status).toBe(422);
    expect(uploads()).toHaveLength(count);
  });

  it.each([
    ['503: the platform asks for patience', { kind: 'rate-limit' as const }, 503, 'platform-rate-limited'],
    ['503: the platform refuses the key', { kind: 'forbid' as const }, 503, 'platform-unauthorized'],
    ['504: no readable answer', { kind: 'bad-json' as const }, 504, 'platform-unclear'],
  ])('%s', async (_rule, rule, status, type) => {
    mirror.trouble({ operation: 'recordingUploadUrl', ...rule });
    const answer = await send('sound');
    expect([answer.status, answer.body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
  });
});

describe('an upload URL', () => {
  it('is handed out with how to use it', async () => {
    const {
      status,
      headers: answered,
      body,
    } = await service.call<RecordingUploadResponse>('POST', '/v1/recordings/upload-url', {
      body: { contentType: 'audio/mpeg', size: 5 },
    });
    expect([status, answered.get('cache-control')]).toEqual([201, 'no-store']);
    const upload = uploads().at(-1);
    expect(upload?.fileName).toMatch(/^[0-9a-f-]{36}\.mp3$/);
    expect(body).toEqual({
      uploadUrl: `${platformUrl}/uploads/${upload?.id}?token=${upload?.token}`,
      url: `${platformUrl}/files/${upload?.id}`,
      method: 'PUT',
      headers: { 'content-type': 'audio/mpeg' },
    });
    const sent = await fetch(body.uploadUrl, { method: body.method, headers: body.headers, body: 'sound' });
    expect(sent.status).toBe(200);
  });

  it.each([
    ['null: none is sent', null, 'none'],
    ['another: it wins', 'audio/x-signed', 'audio/x-signed'],
  ])(
    'the contract’s Content-Type wins in both ways of an upload, %s',
    async (_rule, contentType, uploadContentType) => {
      const contract = JSON.parse(readFileSync('simulator/contract.json', 'utf8'));
      contract.operations.recordingUploadUrl.upload = { method: 'PUT', headers: { 'content-type': contentType } };
      const file = path.join(process.env.TEST_FOLDER ?? '', `contract-${process.pid}-${uploadContentType.length}.json`);
      writeFileSync(file, JSON.stringify(contract));
      const signed = await mirror.start({ PLATFORM_CONTRACT: file });
      const { state } = mirror.simulator;
      const before = state.settings;
      state.settings = { ...before, uploadContentType };
      const through = await send('sound', {}, signed);
      const { body } = await signed.call<RecordingUploadResponse>('POST', '/v1/recordings/upload-url', {
        body: { contentType: 'audio/wav' },
      });
      const bytes = new Uint8Array(Buffer.from('sound')); // of which fetch says no type by itself
      const sent = await fetch(body.uploadUrl, { method: body.method, headers: body.headers, body: bytes });
      const refused = await send('sound');
      state.settings = before;
      expect([through.status, sent.status, refused.status]).toEqual([201, 200, 502]);
      await signed.kill('SIGTERM');
    },
  );

  it('needs nothing to be said', async () => {
    expect((await service.call('POST', '/v1/recordings/upload-url', { body: {} })).status).toBe(201);
  });

  it.each([
    ['contentType is a text', { contentType: 7 }],
    ['size is a whole number', { size: 1.5 }],
    ['size is above 0', { size: 0 }],
    ['unknown fields are refused', { fileName: 'Jane Roe.wav' }],
  ])('400: %s', async (_rule, body) => {
    expect((await service.call('POST', '/v1/recordings/upload-url', { body })).status).toBe(400);
  });
});

it('501: without the operation in the contract, whose settings are named', async () => {
  const bare = await mirror.start({ PLATFORM_CONTRACT: await contractFile(['recordingUploadUrl']) });
  const missing = [
    'PLATFORM_CONTRACT: operations.recordingUploadUrl.method',
    'PLATFORM_CONTRACT: operations.recordingUploadUrl.path',
    'PLATFORM_CONTRACT: operations.recordingUploadUrl.response.uploadUrl',
    'PLATFORM_CONTRACT: operations.recordingUploadUrl.response.fileUrl',
  ];
  const answers = [
    await send('sound', {}, bare),
    await bare.call<ProblemBody>('POST', '/v1/recordings/upload-url', { body: {} }),
  ];
  for (const { status, body } of answers) {
    expect([status, body.type, body.missing]).toEqual([501, 'urn:notebridge:problem:not-configured', missing]);
  }
});
