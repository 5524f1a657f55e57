import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { BodyDigest } from './body-digest.js';

const seed = Number(process.env.SEED);

function digest(body: Buffer, cuts: readonly number[], contentType?: string): string {
  const made = new BodyDigest(contentType);
  const ends = [...new Set(cuts.map((cut) => cut % (body.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...ends, body.length]) {
    made.update(body.subarray(from, to));
    from = to;
  }
  return made.end();
}

const cuts = fc.array(fc.nat(), { maxLength: 12 });

test('the digest is SHA-256, however the body is cut', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), cuts, (bytes, at) => {
      const body = Buffer.from(bytes);
      expect(digest(body, at)).toBe(createHash('sha256').update(body).digest('hex'));
    }),
    { seed },
  );
});

test('a form sent again under another boundary is the same form, however it is cut', () => {
  const form = (boundary: string, text: string) =>
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n${text}\r\n--${boundary}\r\n` +
        `Content-Disposition: form-data; name="b"; filename="b.csv"\r\n\r\n--x\r\n--${boundary}--\r\n`,
    );
  const type = (boundary: string) => `multipart/form-data; boundary=${boundary}`;
  fc.assert(
    fc.property(fc.string({ maxLength: 30 }), cuts, cuts, (text, one, other) => {
      const first = digest(form('----boundaryOne1', text), one, type('----boundaryOne1'));
      expect(digest(form('----x', text), other, 'multipart/form-data; charset=utf-8; boundary="----x"')).toBe(first);
      expect(digest(form('----x', `${text}.`), other, type('----x'))).not.toBe(first);
    }),
    { seed },
  );
});
