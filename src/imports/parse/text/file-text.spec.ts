import fc from 'fast-check';
import { propertyRuns } from '../../../config/property-runs.spec-support.js';
import { inChunks } from '../read-all.spec-support.js';
import { UnreadableFile } from '../row/rejection.js';
import { fileText } from './file-text.js';

async function decode(bytes: Buffer, chunk?: number): Promise<string> {
  let text = '';
  for await (const piece of fileText(inChunks(bytes, chunk))) text += piece;
  return text;
}

async function refusal(bytes: Buffer, chunk?: number): Promise<UnreadableFile> {
  const fault = await decode(bytes, chunk).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UnreadableFile);
  return fault as UnreadableFile;
}

describe('text of an upload', () => {
  it('does not depend on the chunks', async () => {
    // Longer than one piece, so that characters fall across pieces.
    const text = 'aé€😀'.repeat(30_000);
    for (const chunk of [1021, 65_537, 65_538, 65_539]) expect(await decode(Buffer.from(text), chunk)).toBe(text);
  });

  it('loses its byte-order mark and nothing else', async () => {
    expect(await decode(Buffer.from('\ufeffid\ufeff'), 1)).toBe('id\ufeff');
  });

  it('Latin-1 is refused with the line that shows it', async () => {
    const file = Buffer.concat([
      Buffer.from('id,lastName\n1,Roe\n2,'),
      Buffer.from('Müller', 'latin1'),
      Buffer.from('\n3,Doe\n'),
    ]);
    for (const chunk of [1, 7, file.length]) {
      expect(await refusal(file, chunk)).toMatchObject({
        code: 'not-utf8',
        line: 3,
        hint: expect.not.stringContaining('ller'),
      });
    }
    expect(await refusal(Buffer.from('id\né', 'latin1'))).toMatchObject({ code: 'not-utf8', line: 2 });
  });

  it('names the right line far behind the first piece', async () => {
    const file = Buffer.concat([Buffer.from('1,Roe\n'.repeat(50_000)), Buffer.from([0xe9, 0x0a])]);
    expect(await refusal(file, 4096)).toMatchObject({ line: 50_001 });
  });

  it.each([
    [
      'a workbook',
      Buffer.from('PK\u0003\u0004...[Content_Types].xml'),
      'This is an Excel workbook (.xlsx). Save it as CSV UTF-8',
    ],
    ['a zip file', Buffer.from('PK\u0003\u0004rest'), 'This is a spreadsheet or a zip archive.'],
    ['a gzip file', Buffer.from([0x1f, 0x8b, 8, 0]), 'This file is compressed.'],
  ])('%s is refused by name', async (_, bytes, hint) => {
    expect(await refusal(bytes, 1)).toMatchObject({ code: 'not-text', line: 1, hint: expect.stringContaining(hint) });
  });

  it.each(['little', 'big'])('is decoded from UTF-16 with a byte-order mark (%s endian)', async (order) => {
    const text = 'aé€😀\r\n'.repeat(10_000);
    const bytes = Buffer.from(`\ufeff${text}`, 'utf16le');
    if (order === 'big') bytes.swap16();
    for (const chunk of [1021, bytes.length]) expect(await decode(bytes, chunk)).toBe(text);
  });

  it.each([
    ['half a character', Buffer.from('\ufeffa', 'utf16le').subarray(0, 3)],
    ['half a surrogate pair', Buffer.from('\ufeffa\ud800b', 'utf16le')],
  ])('UTF-16 with %s is refused', async (_, bytes) => {
    expect(await refusal(bytes, 1)).toMatchObject({ code: 'not-utf8', line: 1 });
  });

  it('is refused with the line and what to do', async () => {
    const { line, hint } = await refusal(Buffer.from('a\nJ\xfcrgen\n', 'latin1'));
    expect([line, hint]).toEqual([2, expect.stringMatching(/^The text is not UTF-8.*CSV UTF-8/)]);
  });

  it('is refused exactly when it is not UTF-8', async () => {
    const bytes = fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array));
    await fc.assert(
      fc.asyncProperty(bytes, async (file) => {
        const valid = Buffer.from(file.toString('utf8')).equals(file);
        const isOther = ['fffe', 'feff', '1f8b', '504b'].includes(file.subarray(0, 2).toString('hex'));
        if (isOther) return;
        if (valid) expect(await decode(file, 2)).toBe(file.toString('utf8').replace(/^\ufeff/, ''));
        else expect((await refusal(file, 2)).code).toBe('not-utf8');
      }),
      propertyRuns(),
    );
  });
});
