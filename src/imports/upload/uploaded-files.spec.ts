import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { peek, STALLED_MS, uploadedFiles, withIdleTimeout } from './uploaded-files.js';

const SOON_MS = 20;

/** A form that stalls after its first, complete part. */
function stalledForm(): FastifyRequest {
  const part = { type: 'file', fieldname: 'providers', mimetype: 'text/csv', file: Readable.from([Buffer.from('a')]) };
  const parts = async function* () {
    yield part;
    await new Promise(() => undefined);
  };
  const raw = Object.assign(new EventEmitter(), { destroyed: false, complete: false });
  return { headers: {}, raw, isMultipart: () => true, parts } as unknown as FastifyRequest;
}

test('a form that stalls between two parts times out like one that stalls within a part', async () => {
  const seen: string[] = [];
  const reading = (async () => {
    for await (const { name, content } of uploadedFiles(stalledForm(), Readable.from([]), 1_000, SOON_MS)) {
      for await (const chunk of content) seen.push(`${name} ${chunk}`);
    }
  })();
  await expect(reading).rejects.toMatchObject({ status: 408, type: 'upload-stalled' });
  expect(seen).toEqual(['providers a']);
});

describe('an upload that falls silent', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  /** Chunks that arrive after these pauses. */
  async function* sender(pausesMs: number[]): AsyncGenerator<Buffer> {
    for (const pause of pausesMs) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      yield Buffer.from(String(pause));
    }
  }

  async function collected(source: AsyncIterable<Buffer>, into: string[]): Promise<void> {
    for await (const chunk of source) into.push(chunk.toString());
  }

  test('chunks pass as they arrive, regardless of their total time', async () => {
    const chunks: string[] = [];
    const pauses = [0, 1, STALLED_MS - 1, STALLED_MS - 1];
    const reading = collected(withIdleTimeout(sender(pauses)), chunks);
    for (const [at, pause] of pauses.entries()) {
      await jest.advanceTimersByTimeAsync(pause);
      expect(chunks.length).toBe(at + 1);
    }
    await reading;
    expect(chunks).toEqual(pauses.map(String));
    expect(jest.getTimerCount()).toBe(0);
  });

  test('a sender that is silent for 30 seconds gets 408', async () => {
    const chunks: string[] = [];
    const problems: unknown[] = [];
    const silent = sender([0, 10 * STALLED_MS]);
    void collected(withIdleTimeout(silent), chunks).catch((problem: unknown) => problems.push(problem));
    await jest.advanceTimersByTimeAsync(29_999);
    expect([chunks, problems]).toEqual([['0'], []]);
    await jest.advanceTimersByTimeAsync(1);
    expect(problems).toMatchObject([{ status: 408, type: 'upload-stalled' }]);
  });
});

describe('the beginning of a file', () => {
  /** Chunks of `x`, counted as they are taken. */
  function chunks(sizes: number[]) {
    const taken = { count: 0, isClosed: false };
    async function* content(): AsyncGenerator<Buffer> {
      try {
        for (const size of sizes) {
          taken.count += 1;
          yield Buffer.alloc(size, 'x');
        }
      } finally {
        taken.isClosed = true;
      }
    }
    return { content: content(), taken };
  }

  async function lengthOf(content: AsyncIterable<Buffer>): Promise<number> {
    let length = 0;
    for await (const chunk of content) length += chunk.length;
    return length;
  }

  it('is at least 64 KiB, and still part of the whole file', async () => {
    const { content, taken } = chunks([40_000, 40_000, 40_000]);
    const { beginning, whole } = await peek(content);
    expect([beginning.length, taken.count]).toEqual([80_000, 2]);
    expect(await lengthOf(whole)).toBe(120_000);
    expect(taken.isClosed).toBe(true);
  });

  it.each([[[]], [[10]], [[10, 20]]])('is the whole of a small file: %j', async (sizes) => {
    const { beginning, whole } = await peek(chunks(sizes).content);
    const length = sizes.reduce((sum: number, size: number) => sum + size, 0);
    expect([beginning.length, await lengthOf(whole)]).toEqual([length, length]);
  });

  it('closes the file when its reader stops', async () => {
    const { content, taken } = chunks([70_000, 10, 10]);
    const { whole } = await peek(content);
    for await (const _ of whole) break;
    expect(taken).toEqual({ count: 1, isClosed: true });
  });
});

test('an upload whose sender hangs up is answered with 408', async () => {
  const raw = Object.assign(new EventEmitter(), { destroyed: false, complete: false });
  const request = { headers: {}, raw, isMultipart: () => false } as unknown as FastifyRequest;
  const silent = new Readable({ read() {} });
  const [file] = await Promise.all([uploadedFiles(request, silent, 1_000).next()]);
  const reading = (async () => {
    for await (const _ of file.value?.content ?? []);
  })();
  raw.emit('close');
  await expect(reading).rejects.toMatchObject({ status: 408, type: 'interrupted' });
});
