import { isUtf8 } from 'node:buffer';
import { UnreadableFile } from '../row/rejection.js';

/** Bytes that are decoded together: few steps for a large file, and each takes no more than a few milliseconds. */
const PIECE = 8 * 1024;

const SIGNATURES = [
  { bytes: [0xff, 0xfe], code: 'not-utf8', what: 'is UTF-16 text' },
  { bytes: [0xfe, 0xff], code: 'not-utf8', what: 'is UTF-16 text' },
  { bytes: [0x50, 0x4b, 0x03, 0x04], code: 'not-text', what: 'is a spreadsheet or a zip archive' },
  { bytes: [0xd0, 0xcf, 0x11, 0xe0], code: 'not-text', what: 'is an old Excel workbook' },
  { bytes: [0x1f, 0x8b], code: 'not-text', what: 'is compressed' },
];

/** Joins small chunks and cuts large ones, so that every later step works on pieces of one size. */
async function* pieces(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    rest = Buffer.concat([rest, chunk]);
    let at = 0;
    for (; rest.length - at >= PIECE; at += PIECE) yield rest.subarray(at, at + PIECE);
    rest = rest.subarray(at);
  }
  if (rest.length > 0) yield rest;
}

/** How many sound lines a piece that is not UTF-8 begins with. @param before the piece that was decoded last */
function soundLines(before: Buffer, piece: Buffer): number {
  // The piece's first character may begin in the line's last bytes before it, behind the end of an earlier one.
  const tail = before.subarray(Math.max(before.length - 3, before.lastIndexOf('\n') + 1));
  const start = tail.findIndex((byte) => (byte & 0xc0) !== 0x80);
  const text = Buffer.concat([start < 0 ? Buffer.alloc(0) : tail.subarray(start), piece]).toString('latin1');
  return Math.max(
    0,
    text.split('\n').findIndex((line) => !isUtf8(Buffer.from(line, 'latin1'))),
  );
}

function refuseOtherFormats(bytes: Buffer): void {
  const found = SIGNATURES.find((signature) => signature.bytes.every((byte, index) => bytes[index] === byte));
  if (!found) return;
  throw new UnreadableFile(found.code, 1, `The file ${found.what}: save it as plain text in UTF-8 and send that.`);
}

const HINT =
  'The text is not UTF-8, it looks like Latin-1 or Windows-1252: save the file as UTF-8 (in Excel: CSV UTF-8).';

/**
 * The text of a stream of UTF-8, piece by piece, without its byte-order mark.
 * @throws UnreadableFile at the first line that is not UTF-8 (Latin-1, Windows-1252, UTF-16), and for binary formats
 */
export async function* utf8Text(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let before: Buffer = Buffer.alloc(0);
  let lines = 1;
  const decode = (piece: Buffer, stream: boolean): string => {
    try {
      return decoder.decode(piece, { stream });
    } catch {
      throw new UnreadableFile('not-utf8', lines + soundLines(before, piece), HINT);
    }
  };
  for await (const piece of pieces(source)) {
    if (before.length === 0) refuseOtherFormats(piece);
    const text = decode(piece, true);
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++;
    before = piece;
    yield text;
  }
  decode(Buffer.alloc(0), false);
}
