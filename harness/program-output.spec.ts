import { ProgramOutput } from './program-output.js';

test('the end of a long output is kept, and all of it is counted', () => {
  const [whole, end] = [new ProgramOutput(), new ProgramOutput(10)];
  for (let line = 0; line < 1_000; line += 1) {
    whole.add(`ä${line}\n`);
    end.add(`ä${line}\n`);
    expect(end.text.length).toBeLessThanOrEqual(20);
  }
  expect(whole.text.endsWith(end.text)).toBe(true);
  expect(end.text.length).toBeGreaterThanOrEqual(10);
  expect([whole.bytes, end.bytes]).toEqual([whole.text.length + 1_000, whole.bytes]);
});
