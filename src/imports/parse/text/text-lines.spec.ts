import { type TextLine, TextLines } from './text-lines.js';

function split(text: string, limit: number, chunk: number): TextLine[] {
  const lines = new TextLines(limit);
  const found: TextLine[] = [];
  for (let at = 0; at < text.length; at += chunk) found.push(...lines.push(text.slice(at, at + chunk)));
  return [...found, ...lines.push('', true)];
}

describe('lines of a text', () => {
  it('are the same however the text was cut, those over the limit without their text', () => {
    const text = `one\n\n${'x'.repeat(9)}\nfour\n${'y'.repeat(8)}`;
    for (const chunk of [1, 2, 3, 5, 100]) {
      expect(split(text, 8, chunk).map((line) => line.text)).toEqual(['one', '', undefined, 'four', 'y'.repeat(8)]);
    }
    expect(split('', 8, 1)).toEqual([]);
    expect(split('123456789', 8, 2)).toMatchObject([{ line: 1, text: undefined }]);
  });

  it('over the limit are skipped without being kept', () => {
    const lines = new TextLines(100);
    for (let piece = 0; piece < 1000; piece++) {
      expect([...lines.push('x'.repeat(1000))]).toEqual([]);
      expect(JSON.stringify(lines).length).toBeLessThan(500);
    }
    expect([...lines.push('\nb\n')]).toMatchObject([
      { line: 1, text: undefined },
      { line: 2, text: 'b' },
    ]);
  });
});
