import fc from 'fast-check';
import { namedIds } from './processing-notice.js';

describe('a payload of which the spec shows nothing', () => {
  test.each([
    [{ payload: { processingId: 'p-1' } }, { processingId: 'p-1', sessionId: null }],
    [{ payload: { session: { sessionId: 's-1' } } }, { processingId: null, sessionId: 's-1' }],
    [
      { sessionId: 's-1', payload: { sessionId: 's-2', processingId: 'p-1' } },
      { processingId: 'p-1', sessionId: 's-1' },
    ],
    [{ payload: [{ a: 1 }, { processingId: 'p-1' }] }, { processingId: 'p-1', sessionId: null }],
    [{ payload: { processingId: 7, sessionId: '' } }, { processingId: null, sessionId: null }],
    [{ payload: { processingId: 'p\0', sessionId: 's\ud800' } }, { processingId: null, sessionId: null }],
    [{ payload: null }, { processingId: null, sessionId: null }],
    [{}, { processingId: null, sessionId: null }],
  ])('%j names %j', (payload, ids) => {
    expect(namedIds(payload)).toEqual(ids);
  });

  test('whatever it holds, looking through it ends and throws nothing', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 12 }), (payload) => {
        const ids = namedIds(payload);
        return Object.values(ids).every((id) => id === null || id.length > 0);
      }),
      { seed: Number(process.env.SEED) },
    );
  });
});
