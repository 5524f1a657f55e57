import { namedIds } from './session-events.handler.js';

const RULE = { sessionId: '/payload/session/id', processingId: '/payload/processingId' };
const NOTHING = { processingId: null, sessionId: null };

test('reads no ids without pointers', () => {
  const payload = { sessionId: 's-1', processingId: 'p-1', deep: { sessionId: 's-2' } };
  expect(namedIds({ payload })).toEqual(NOTHING);
});

test('reads ids only where the contract locates them', () => {
  const payload = { session: { id: 's-1' }, processingId: 'p-1', audit: { sessionId: 's-other' } };
  expect(namedIds({ payload }, RULE)).toEqual({ sessionId: 's-1', processingId: 'p-1' });
  expect(namedIds({ payload: { audit: { sessionId: 's-other' } } }, RULE)).toEqual(NOTHING);
  expect(namedIds({ payload }, { sessionId: RULE.sessionId })).toEqual({ sessionId: 's-1', processingId: null });
});

test.each([[''], [7], [null], [{}], ['x'.repeat(513)], ['a\0b'], ['\ud800'], [undefined]])(
  'ignores a value that is not an id: %j',
  (id) => {
    expect(namedIds({ payload: { processingId: id } }, RULE)).toEqual(NOTHING);
  },
);

test.each([[null], ['text'], [[]], [undefined]])('reads no ids from the body %j', (body) => {
  expect(namedIds(body, RULE)).toEqual(NOTHING);
});
