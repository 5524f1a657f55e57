import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { errorForAnswer } from './platform-answer.js';

const refused = { status: 400, retryAfter: undefined, isPage: false };
const messageOf = (text: string, pointer?: string) =>
  errorForAnswer('checkUser', { ...refused, text }, new Date(0), pointer).platformMessage;

describe('the message of the platform', () => {
  it.each(['plain words', '{"message":"No.","code":7}', '{"error":{"message":"inner"}}', '[]', 'null'])(
    'is the whole body of %s, because no form of it is known',
    (body) => {
      expect(messageOf(body)).toBe(body);
    },
  );

  it.each([
    ['{"message":"No."}', '/message', 'No.'],
    ['{"fault":{"words":["a","b"]}}', '/fault/words', '["a","b"]'],
    ['{"fault":{"words":"a\\n b"}}', '/fault/words', 'a b'],
    ['{"detail":"D"}', '/message', '{"detail":"D"}'],
    ['{"message":""}', '/message', '{"message":""}'],
    ['{"message":null,"error":"E"}', '/message', '{"message":null,"error":"E"}'],
    ['plain words', '/message', 'plain words'],
  ])('of %s is, at %s of the contract, %s', (body, pointer, words) => {
    expect(messageOf(body, pointer)).toBe(words);
  });

  it('is the whole body of JSON that is nested too deep to be read', () => {
    const body = `{"message":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    expect(messageOf(body, '/message')).toBe(`${body.slice(0, 499)}…`);
  });

  it('is absent without a body, and if that is a web page', () => {
    const page = { ...refused, isPage: true, text: '<p>no' };
    const ofPage = errorForAnswer('checkUser', page, new Date(0));
    expect([messageOf(''), messageOf(' \n'), ofPage.platformMessage]).toEqual([undefined, undefined, undefined]);
  });

  it('is one line of at most 500 characters, for any answer', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue(), fc.record({ message: fc.string({ maxLength: 1_200, unit: 'binary' }) })),
        fc.constantFrom(undefined, '/message'),
        (body, pointer) => {
          const words = messageOf(JSON.stringify(body), pointer) ?? 'x';
          expect(words.length).toBeLessThanOrEqual(500);
          expect(words).not.toMatch(/[\p{Cc}\p{Cs}]|^\s*$/u);
        },
      ),
      propertyRuns(),
    );
  });
});
