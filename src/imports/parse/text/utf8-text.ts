import { isUtf8 } from 'node:buffer';
import { UnreadableFile } from './unreadable-file.js';

/** Bytes that are decoded together: few steps for a large file, and each takes no more than a few milliseconds. */
const PIECE = 8 * 1024;

const NEWLINE = 0x0a;

const SIGNATURES: { bytes: readonly number[]; code: 'not-utf8' | 'not-text'; what: string }[] = [
  { bytes: [0xff, 0xfe], code: 'not-utf8', what: 'is UTF-16 text' },
  { bytes: [0xfe, 0xff], code: 'not-utf8', what: 'is UTF-16 text' },
  { bytes: [0x50, 0x4b, 0x03, 0x04], code: 'not-text', what: 'is a spreadsheet or a zip archive' },
  { bytes: [0xd0, 0xcf, 0x11, 0xe0], code: 'not-text', what: 'is an old Excel workbook' },
  { bytes: [0x1f, 0x8b], code: 'not-text', what: 'is compressed' },
];

/** Joins small chunks and cuts large ones, so that every later step works on pieces of one size. */
async function* pieces(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = [];
  let size = 0;
  for await (const chunk of source) {
    waiting.push(chunk);
    size += chunk.length;
    if (size < PIECE) continue;
    const whole = waiting.length === 1 ? chunk : Buffer.concat(waiting);
    for (let at = 0; at < size; at += PIECE) yield whole.subarray(at, at + PIECE);
    waiting = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(waiting);
}

/** The line of the fault in a piece that is not UTF-8, counted from its first one. @param before what was decoded last */
function faultLine(before: Buffer, piece: Buffer): number {
  // The piece's first character may begin in the line's last bytes before it, behind the end of an earlier one.
  const tail = before.subarray(Math.max(before.length - 3, before.lastIndexOf(NEWLINE) + 1));
  const start = tail.findIndex((byte) => (byte & 0xc0) !== 0x80);
  const bytes = Buffer.concat([tail.subarray(start < 0 ? tail.length : start), piece]);
  let line = 1;
  for (
    let from = 0, end = bytes.indexOf(NEWLINE);
    end >= 0;
    from = end + 1, end = bytes.indexOf(NEWLINE, from), line++
  ) {
    if (!isUtf8(bytes.subarray(from, end))) break;
  }
  return line;
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
  let lines = 0;
  const decode = (piece?: Buffer): string => {
    try {
      return piece ? decoder.decode(piece, { stream: true }) : decoder.decode();
    } catch {
      throw new UnreadableFile('not-utf8', lines + faultLine(before, piece ?? Buffer.alloc(0)), HINT);
    }
  };
  for await (const piece of pieces(source)) {
    if (before.length === 0) refuseOtherFormats(piece);
    const text = decode(piece);
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++;
    before = piece;
    yield text;
  }
  decode();
}
