import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { dropRest, sourceOf } from './request-source.js';

it('everything passes in its order', async () => {
  const chunks = Array.from({ length: 100 }, (_, at) => Buffer.alloc(1_000, at));
  expect(await buffer(sourceOf(Readable.from(chunks)))).toEqual(Buffer.concat(chunks));
});

it('a request survives the end of the upload', async () => {
  const request = new PassThrough();
  const source = sourceOf(request);
  request.write('begun');
  source.destroy();
  await new Promise((resolve) => source.once('close', resolve));
  expect(request.destroyed).toBe(false);
});

it('an interrupted request interrupts the upload', async () => {
  const request = new PassThrough();
  const source = sourceOf(request);
  const broken = new Promise((resolve) => source.once('error', resolve));
  request.destroy();
  expect(await broken).toEqual(expect.any(Error));
});

it('what still comes is dropped until the end, and no longer than was said', async () => {
  const request = new PassThrough();
  const dropping = dropRest(request, 60_000);
  request.write(Buffer.alloc(1_000_000));
  request.end();
  await dropping;
  expect(request.readableEnded).toBe(true);
  await dropRest(request, 60_000);

  const endless = new PassThrough();
  await dropRest(endless, 5);
  expect(endless.readableEnded).toBe(false);
});
