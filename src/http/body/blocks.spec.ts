import { Readable } from 'node:stream';
import fc from 'fast-check';
import { inBlocks } from './blocks.js';

const read = async (body: Readable) => {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk as Buffer);
  return chunks;
};

test('a body stays the same, in few blocks, however it is cut', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ minLength: 1, maxLength: 40_000 }), { maxLength: 8 }), async (parts) => {
      const sent = parts.map((part) => Buffer.from(part));
      const whole = Buffer.concat(sent);
      const blocks = await read(inBlocks(Readable.from(sent)));
      expect(Buffer.concat(blocks).equals(whole)).toBe(true);
      expect(blocks.length).toBeLessThanOrEqual(whole.length / 16_384 + 1);
    }),
    { numRuns: 50 },
  ));

test('a body that breaks off is an error', async () => {
  const body = new Readable({ read() {} });
  const reading = read(inBlocks(body));
  body.push('start');
  body.destroy(new Error('gone'));
  await expect(reading).rejects.toThrow('gone');
});
