import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { readingOf, STALLED_MS, uploadedFiles, withIdleTimeout } from './uploaded-files.js';

const SOON_MS = 20;

/** A form whose first part is whole, and after which nothing comes any more. */
function stalledForm(): FastifyRequest {
  const part = { type: 'file', fieldname: 'providers', mimetype: 'text/csv', file: Readable.from([Buffer.from('a')]) };
  const parts = async function* () {
    yield part;
    await new Promise(() => undefined);
  };
  const raw = Object.assign(new EventEmitter(), { destroyed: false, complete: false });
  return { headers: {}, raw, isMultipart: () => true, parts } as unknown as FastifyRequest;
}

test('a form that stalls between two parts is given up like one that stalls within a part', async () => {
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

  /** Chunks that come after pauses of so many milliseconds. */
  async function* sender(pausesMs: number[]): AsyncGenerator<Buffer> {
    for (const pause of pausesMs) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      yield Buffer.from(String(pause));
    }
  }

  async function collected(source: AsyncIterable<Buffer>, into: string[]): Promise<void> {
    for await (const chunk of source) into.push(chunk.toString());
  }

  test('chunks pass as they come, however long they take together', async () => {
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

  test('a sender that falls silent for half a minute is given up, with 408', async () => {
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

const file = (mediaType: string, name = 'people') => ({ name, mediaType, content: (async function* () {})() });

describe('how a file is read', () => {
  it.each([
    ['text/csv', 'people', 'csv'],
    ['application/octet-stream', 'people.NDJSON', 'ndjson'],
    ['', 'people.csv', 'csv'],
  ])('%j, %s: as %s', (mediaType, name, format) => {
    expect(readingOf(file(mediaType, name), 'clients')).toEqual({ format, kind: 'clients' });
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'application/xml'])(
    'a sender that calls it %s is refused',
    (mediaType) => {
      expect(() => readingOf(file(mediaType), 'clients')).toThrow(expect.objectContaining({ type: 'unknown-format' }));
    },
  );
});
