import fc from 'fast-check';
import { propertyRuns } from '../../../config/property-runs.spec-support.js';
import { inChunks } from '../read-all.spec-support.js';
import { UnreadableFile } from '../row/rejection.js';
import { utf8Text } from './utf8-text.js';

async function decode(bytes: Buffer, chunk?: number): Promise<string> {
  let text = '';
  for await (const piece of utf8Text(inChunks(bytes, chunk))) text += piece;
  return text;
}

async function refusal(bytes: Buffer, chunk?: number): Promise<UnreadableFile> {
  const fault = await decode(bytes, chunk).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UnreadableFile);
  return fault as UnreadableFile;
}

describe('text of an upload', () => {
  it('is the same however its bytes were cut', async () => {
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

  it('the line is right far behind the first piece', async () => {
    const file = Buffer.concat([Buffer.from('1,Roe\n'.repeat(50_000)), Buffer.from([0xe9, 0x0a])]);
    expect(await refusal(file, 4096)).toMatchObject({ line: 50_001 });
  });

  it.each([
    ['UTF-16', Buffer.from('\ufeffid', 'utf16le'), 'not-utf8'],
    ['a workbook', Buffer.from('PK\u0003\u0004rest'), 'not-text'],
    ['a gzip file', Buffer.from([0x1f, 0x8b, 8, 0]), 'not-text'],
  ])('%s is refused by name', async (_, bytes, code) => {
    expect(await refusal(bytes, 1)).toMatchObject({ code, line: 1 });
  });

  it('is refused with the line once and the way to mend it', async () => {
    const { line, hint } = await refusal(Buffer.from('a\nJ\xfcrgen\n', 'latin1'));
    expect([line, hint]).toEqual([2, expect.stringMatching(/^The text is not UTF-8.*CSV UTF-8/)]);
  });

  it('is refused exactly when it is not UTF-8', async () => {
    const bytes = fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array));
    await fc.assert(
      fc.asyncProperty(bytes, async (file) => {
        const valid = Buffer.from(file.toString('utf8')).equals(file);
        const signed = [0xff, 0xfe, 0x1f].includes(file[0] ?? 0) || file.subarray(0, 2).toString() === 'PK';
        if (signed) return;
        if (valid) expect(await decode(file, 2)).toBe(file.toString('utf8').replace(/^\ufeff/, ''));
        else expect((await refusal(file, 2)).code).toBe('not-utf8');
      }),
      propertyRuns(),
    );
  });
});
