import { createHash } from 'node:crypto';
import { mkdtempSync, openAsBlob, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from '../../client/notebridge-client.js';
import { ADMIN_KEY } from '../support/app.js';
import { useWorld } from '../world/use-world.js';
import { type LosingProxy, startLosingProxy } from './losing-proxy.js';

const MB = 1_000_000;
const world = useWorld();
let proxy: LosingProxy;

beforeEach(async () => {
  proxy = await startLosingProxy(world.url);
});
afterEach(() => proxy.close());

const newClient = (url = proxy.url) => createClient({ url, key: ADMIN_KEY });
const uploads = () => world.platform.simulator.state.uploads.list();
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const SOUND = Uint8Array.from({ length: 300_000 }, (_, at) => (at * 7) % 251);

describe('upload()', () => {
  test('sends a file on disk, and again after a lost answer', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-client-'));
    try {
      const file = path.join(folder, 'visit.wav');
      writeFileSync(file, SOUND);
      proxy.lose(1);
      const { data } = await newClient().upload('/v1/recordings', await openAsBlob(file, { type: 'audio/wav' }));
      expect(data.bytes).toBe(SOUND.length);
      expect(uploads()).toEqual([
        expect.objectContaining({ sha256: sha256(SOUND), fileName: expect.stringMatching(/\.wav$/) }),
      ]);
      expect(new Set(proxy.passed.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
      expect(proxy.passed).toHaveLength(2);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('opens a stream again for each attempt', async () => {
    let opened = 0;
    const open = async function* () {
      opened += 1;
      for (let at = 0; at < SOUND.length; at += 50_000) yield SOUND.subarray(at, at + 50_000);
    };
    proxy.lose(1);
    const options = { type: 'audio/mpeg', length: SOUND.length };
    const { data } = await newClient().upload('/v1/recordings', open, options);
    expect([data.bytes, opened]).toEqual([SOUND.length, 2]);
    expect(uploads()[0]).toMatchObject({ sha256: sha256(SOUND), fileName: expect.stringMatching(/\.mp3$/) });
  });

  test('reads a stream no faster than the platform takes it', async () => {
    const total = 60 * MB;
    const chunk = new Uint8Array(100_000);
    let read = 0;
    let ahead = 0;
    const open = async function* () {
      for (read = 0; read < total; ) {
        read += chunk.length;
        yield chunk;
        ahead = Math.max(ahead, read - (uploads()[0]?.bytes ?? 0));
      }
    };
    const options = { type: 'audio/wav', length: total };
    expect((await newClient(world.url).upload('/v1/recordings', open, options)).data.bytes).toBe(total);
    expect(ahead).toBeLessThan(20 * MB);
  });

  test('sends a form, and the same form again after a lost answer', async () => {
    const form = new FormData();
    const csv = 'externalId,email,firstName,lastName\nP-1,p1@mail.example,Noor,Haddad\n';
    form.append('providers', new Blob([csv], { type: 'text/csv' }), 'providers.csv');
    proxy.lose(1);
    const { data } = await newClient().upload('/v1/imports', form, { params: { query: { dryRun: true } } });
    expect(data.state).toBe('staging');
    expect(await world.sql('SELECT id FROM imports')).toEqual([{ id: data.id }]);
    expect(proxy.passed).toHaveLength(2);
  });
});
