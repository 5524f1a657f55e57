import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startEmbeddedPostgres } from '../demo/embedded-postgres/embedded-postgres.js';
import { type BenchRow, median } from './bench-row.js';
import { peakMbDuring, residentMb, uploadBytes } from './big-upload.js';
import { startChild } from './child-program.js';
import { startService } from './service-process.js';

/** 2 GB. */
const BYTES = 2_000_000_000;
/** Enough rounds to average out how the system assigns processes to cores. */
const ROUNDS = 9;
/** Maximum MB above idle during an upload of any size. */
const MAX_MB = 150;
const MIN_RATIO = 0.7;

const ADMIN_KEY = randomBytes(24).toString('hex');
const CONTRACT = {
  apiKey: { header: 'Authorization', scheme: 'Bearer' },
  operations: {
    recordingUploadUrl: { method: 'POST', path: '/recording-url', response: { uploadUrl: '/url', fileUrl: '/url' } },
  },
};

/**
 * Recordings of 2 GB through `POST /v1/recordings`, compared with a bare Node pipe of the same bytes, between the same sender
 * and the same store. The two take turns; medians of the rounds are shown.
 */
export async function benchRecordings(): Promise<BenchRow[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notebridge-bench-'));
  const postgres = await startEmbeddedPostgres(folder);
  const started: { stop(): Promise<void> }[] = [];
  try {
    const store = await startChild('bench/recordings-store.js', {});
    started.push(store);
    const { port } = store.ready as { port: number };
    const pipe = await startChild('bench/recordings-pipe.js', { STORE_PORT: String(port) });
    started.push(pipe);
    const contract = path.join(folder, 'contract.json');
    await writeFile(contract, JSON.stringify(CONTRACT));
    const service = await startService({
      PLATFORM_BASE_URL: `http://127.0.0.1:${port}`,
      PLATFORM_CONTRACT: contract,
      ADMIN_API_KEY: ADMIN_KEY,
      DATABASE_URL: postgres.url,
    });
    started.push(service);
    const bare = `http://127.0.0.1:${(pipe.ready as { port: number }).port}/`;
    return await takeTurns(bare, `${service.url}/v1/recordings`, service.child.pid ?? 0);
  } finally {
    for (const program of started.reverse()) await program.stop();
    await postgres.release();
    await rm(folder, { recursive: true, force: true });
  }
}

async function takeTurns(bare: string, service: string, pid: number): Promise<BenchRow[]> {
  await send(bare, BYTES / 20);
  await send(service, BYTES / 20);
  const idleMb = await residentMb(pid);
  const rates: { bare: number[]; service: number[] } = { bare: [], service: [] };
  let mostMb = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    rates.bare.push(await send(bare, BYTES));
    const { peakMb, result } = await peakMbDuring(pid, send(service, BYTES));
    rates.service.push(result);
    mostMb = Math.max(mostMb, peakMb - idleMb);
  }
  const ratio = median(rates.service.map((rate, round) => rate / (rates.bare[round] ?? Number.NaN)));
  return [
    { name: 'recordings, 2 GB through a bare Node pipe', value: median(rates.bare), unit: 'MB/s' },
    { name: 'recordings, 2 GB through the service', value: median(rates.service), unit: 'MB/s' },
    {
      name: 'recordings, the service over the bare pipe',
      value: ratio,
      unit: '×',
      ratio,
      target: `≥ ${MIN_RATIO}`,
      ok: ratio >= MIN_RATIO,
    },
    {
      name: 'recordings, memory of the service above idle',
      value: mostMb,
      unit: 'MB',
      target: `≤ ${MAX_MB}`,
      ok: mostMb <= MAX_MB,
    },
  ];
}

/** @returns MB (10⁶ bytes) per second */
async function send(url: string, bytes: number): Promise<number> {
  const start = performance.now();
  const { status } = await uploadBytes(url, bytes, { authorization: `Bearer ${ADMIN_KEY}` });
  if (status !== 201) throw new Error(`A recording of ${bytes} bytes returned ${status}.`);
  return bytes / 1_000 / (performance.now() - start);
}
