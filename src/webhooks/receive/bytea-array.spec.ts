import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { byteaArray } from './bytea-array.js';

/** Reads the binary format as PostgreSQL's array_recv does. */
function read(array: Buffer): Buffer[] {
  const [dimensions, nulls, type, count = 0, first] = [0, 4, 8, 12, 16].map((at) => array.readInt32BE(at));
  expect([dimensions, nulls, type, first]).toEqual([1, 0, 17, 1]);
  const items: Buffer[] = [];
  let at = 20;
  while (items.length < count) {
    const length = array.readInt32BE(at);
    items.push(array.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  expect(at).toBe(array.length);
  return items;
}

describe('byteaArray', () => {
  it('holds every item unchanged, empty ones too', () => {
    const items = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(items, (texts) => {
        const buffers = texts.map((text) => Buffer.from(text));
        expect(read(byteaArray(buffers))).toEqual(buffers);
      }),
      propertyRuns(),
    );
  });
});
