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

/** Bytes up to the last character that is complete: its remaining bytes come with the next piece. */
function completeLength(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte >= 0x80 && byte < 0xc0) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

function newlines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

/** Lines before the first one that is not UTF-8. */
function linesBeforeFault(bytes: Buffer): number {
  let lines = 0;
  let start = 0;
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
    if (!isUtf8(bytes.subarray(start, end))) return lines;
    lines++;
    start = end + 1;
  }
  return lines;
}

function refuseOtherFormats(bytes: Buffer): void {
  const found = SIGNATURES.find((signature) => signature.bytes.every((byte, index) => bytes[index] === byte));
  if (!found) return;
  throw new UnreadableFile(found.code, 1, `The file ${found.what}: save it as plain text in UTF-8 and send that.`);
}

/**
 * The text of a stream of UTF-8, piece by piece, without its byte-order mark.
 * @throws UnreadableFile at the first line that is not UTF-8 (Latin-1, Windows-1252, UTF-16), and for binary formats
 */
export async function* utf8Text(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  let lines = 0;
  let first = true;
  const decode = (bytes: Buffer): string => {
    if (!isUtf8(bytes)) {
      const line = lines + linesBeforeFault(bytes) + 1;
      const hint =
        'The text is not UTF-8, it looks like Latin-1 or Windows-1252: save the file as UTF-8 (in Excel: CSV UTF-8).';
      throw new UnreadableFile('not-utf8', line, hint);
    }
    lines += newlines(bytes);
    return bytes.toString('utf8');
  };
  for await (const piece of pieces(source)) {
    const bytes = rest.length > 0 ? Buffer.concat([rest, piece]) : piece;
    if (first) refuseOtherFormats(bytes);
    const length = completeLength(bytes);
    rest = bytes.subarray(length);
    const text = decode(bytes.subarray(0, length));
    yield first && text.startsWith('\ufeff') ? text.slice(1) : text;
    first = false;
  }
  if (rest.length > 0) yield decode(rest);
}
