import { namedIds } from './session-events.handler.js';

const RULE = { sessionId: '/payload/session/id', processingId: '/payload/processingId' };
const NOTHING = { processingId: null, sessionId: null };

test('without pointers an event of unknown shape names nothing, whatever it holds', () => {
  const payload = { sessionId: 's-1', processingId: 'p-1', deep: { sessionId: 's-2' } };
  expect(namedIds({ payload })).toEqual(NOTHING);
});

test('the ids are read where the contract says, and nowhere else', () => {
  const payload = { session: { id: 's-1' }, processingId: 'p-1', audit: { sessionId: 's-other' } };
  expect(namedIds({ payload }, RULE)).toEqual({ sessionId: 's-1', processingId: 'p-1' });
  expect(namedIds({ payload: { audit: { sessionId: 's-other' } } }, RULE)).toEqual(NOTHING);
  expect(namedIds({ payload }, { sessionId: RULE.sessionId })).toEqual({ sessionId: 's-1', processingId: null });
});

test.each([[''], [7], [null], [{}], ['x'.repeat(513)], ['a\0b'], ['\ud800'], [undefined]])(
  'what is no id there is not read: %j',
  (id) => {
    expect(namedIds({ payload: { processingId: id } }, RULE)).toEqual(NOTHING);
  },
);

test.each([[null], ['text'], [[]], [undefined]])('a body that is %j names nothing', (body) => {
  expect(namedIds(body, RULE)).toEqual(NOTHING);
});
