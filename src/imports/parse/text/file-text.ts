import { TextDecoder } from 'node:util';
import { UnreadableFile } from '../row/rejection.js';

/** Bytes that are decoded together: few steps for a large file, and each takes at most a few milliseconds. */
const PIECE = 8 * 1024;

const AS_TEXT = 'Save it as plain text in UTF-8 and upload that.';

const XLSX_HINT = 'This is an Excel workbook (.xlsx). Save it as CSV UTF-8 and upload that file.';

/** Formats that are not text, by their beginning in Latin-1 and a part of the rest. */
const SIGNATURES = [
  { start: 'PK\x03\x04', part: '[Content_Types].xml', hint: XLSX_HINT },
  { start: 'PK\x03\x04', part: 'xl/', hint: XLSX_HINT },
  { start: 'PK\x03\x04', part: '', hint: `This is a spreadsheet or a zip archive. ${AS_TEXT}` },
  { start: '\xd0\xcf\x11\xe0', part: '', hint: `This is an old Excel workbook. ${AS_TEXT}` },
  { start: '\x1f\x8b', part: '', hint: `This file is compressed. ${AS_TEXT}` },
];

/** Finds the hint for a file that is not text; undefined for a text. */
export function notTextHint(beginning: Buffer): string | undefined {
  const text = beginning.toString('latin1');
  return SIGNATURES.find(({ start, part }) => text.startsWith(start) && text.includes(part))?.hint;
}

/** The encoding of a text by its byte-order mark; UTF-8 without one. */
export function encodingOf(beginning: Buffer): 'utf-8' | 'utf-16le' | 'utf-16be' {
  const mark = beginning.subarray(0, 2).toString('hex');
  return mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
}

/** Cuts the bytes into pieces of bounded size, behind line ends where a piece has one. */
async function* pieces(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= PIECE) {
      const end = rest.lastIndexOf('\n', PIECE - 1) + 1 || PIECE;
      yield rest.subarray(0, end);
      rest = rest.subarray(end);
    }
  }
  if (rest.length > 0) yield rest;
}

const NOT_UTF8 =
  'The text is not UTF-8; it looks like Latin-1 or Windows-1252. Save the file as UTF-8 (in Excel: CSV UTF-8).';
const NOT_UTF16 =
  'The file begins as UTF-16, but is not valid UTF-16. Export it again, and save it as UTF-8 (in Excel: CSV UTF-8).';

/**
 * Decodes a stream of UTF-8, or of UTF-16 with a byte-order mark, piece by piece. The text has no byte-order mark.
 *
 * @throws UnreadableFile at the first line in another encoding (Latin-1, Windows-1252), and for formats that are not text
 */
export async function* fileText(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let decoder: TextDecoder | undefined;
  let line = 1;
  const decode = (piece: Buffer, stream: boolean): string => {
    decoder ??= new TextDecoder(encodingOf(piece), { fatal: true });
    try {
      return decoder.decode(piece, { stream });
    } catch {
      // A piece without a line end may begin inside a character, but then all of it is on one line.
      const [valid = ''] = new TextDecoder(decoder.encoding).decode(piece).split('\ufffd', 1);
      const hint = decoder.encoding === 'utf-8' ? NOT_UTF8 : NOT_UTF16;
      throw new UnreadableFile('not-utf8', line + lineEndsIn(valid), hint);
    }
  };
  for await (const piece of pieces(source)) {
    const hint = decoder ? undefined : notTextHint(piece);
    if (hint) throw new UnreadableFile('not-text', 1, hint);
    const text = decode(piece, true);
    line += lineEndsIn(text);
    yield text;
  }
  decode(Buffer.alloc(0), false);
}

function lineEndsIn(text: string): number {
  return text.split('\n').length - 1;
}
