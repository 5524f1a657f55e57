import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { errorForAnswer } from './platform-answer.js';

const messageIn = (bytes: Buffer, charset = 'utf-8') =>
  errorForAnswer('checkUser', { status: 400, retryAfter: undefined, content: { bytes, charset } }, new Date(0))
    .platformMessage;
const platformMessage = (body: unknown) => messageIn(Buffer.from(JSON.stringify(body)));

describe('the message of the platform', () => {
  it.each([
    ['plain words', 'plain words'],
    [{ message: 'a\n b' }, 'a b'],
    [{ error: { message: 'inner' } }, 'inner'],
    [{ error: 'Bad Request', message: ['x', 'y'] }, 'x; y'],
    [{ title: 'T', detail: 'D' }, 'D'],
    [{ errors: [{ message: 'one' }, 'two'] }, 'one; two'],
    ['<html><body>no</body></html>', undefined],
    [{ statusCode: 400 }, undefined],
    [null, undefined],
    ['', undefined],
  ])('%j: %j', (body, words) => {
    expect(platformMessage(body)).toBe(words);
  });

  it('is decoded in the charset of the answer, or absent', () => {
    const bytes = Buffer.from('Zo\xeb', 'latin1');
    expect([messageIn(bytes, 'iso-8859-1'), messageIn(bytes), messageIn(bytes, 'klingon')]).toEqual([
      'Zo\xeb',
      undefined,
      undefined,
    ]);
  });

  it('is one line of at most 500 characters, for any answer', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue(), fc.record({ message: fc.string({ maxLength: 1_200, unit: 'binary' }) })),
        (body) => {
          const words = platformMessage(body) ?? 'x';
          expect(words.length).toBeLessThanOrEqual(500);
          expect(words).not.toMatch(/[\p{Cc}]|^\s*$/u);
        },
      ),
      propertyRuns(),
    );
  });
});
