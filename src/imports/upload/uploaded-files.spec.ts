import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { uploadedFiles } from './uploaded-files.js';

const STALLED_MS = 20;

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
    for await (const { name, content } of uploadedFiles(stalledForm(), Readable.from([]), 1_000, STALLED_MS)) {
      for await (const chunk of content) seen.push(`${name} ${chunk}`);
    }
  })();
  await expect(reading).rejects.toMatchObject({ status: 408, type: 'upload-stalled' });
  expect(seen).toEqual(['providers a']);
});
