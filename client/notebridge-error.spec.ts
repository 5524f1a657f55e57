import { errorOf, errorOfAnswer } from './notebridge-error.js';

const problem = (members: object) => JSON.stringify({ title: 'Gone', status: 410, ...members });
const TYPE = 'urn:notebridge:problem:cursor-gone';

test('a problem gives its word, its sentence and its further members', () => {
  const text = problem({ type: TYPE, detail: 'Events were deleted.', pointer: '/after', continueAfter: '1-7' });
  const error = errorOf(410, text, null, '');
  expect(error).toMatchObject({
    name: 'NotebridgeError',
    type: 'cursor-gone',
    status: 410,
    detail: 'Events were deleted.',
    message: 'Events were deleted.',
    pointer: '/after',
    retryAfter: undefined,
  });
  expect(error.more).toEqual({ continueAfter: '1-7' });
});

test.each(['', 'Bad gateway', '<html>', '[]', 'null', '{"error": "no"}', '{"type": "https://proxy.example/busy"}'])(
  'the answer %j of a proxy is unreadable-answer',
  async (text) => {
    const error = await errorOfAnswer(new Response(text, { status: 502 }));
    expect([error.type, error.status, error.more]).toEqual(['unreadable-answer', 502, {}]);
    expect(error.message).toContain('502');
  },
);

test.each([
  ['', 404, 'http://wrong.example answered with the status 404 and no problem details. Check the url of the client.'],
  ['{"detail": "Not Found"}', 405, expect.stringContaining('Check the url')],
  ['Bad gateway', 502, 'http://wrong.example answered with the status 502 and no problem details.'],
])('the answer %j with %i names its origin', async (text, status, message) => {
  const answer = new Response(text, { status });
  Object.defineProperty(answer, 'url', { value: 'http://wrong.example/v1/clients' });
  expect((await errorOfAnswer(answer)).message).toEqual(message);
});

const NOW = Date.parse('2026-11-27T10:00:00Z');

test.each([
  [{}, '7', 7],
  [{}, 'Fri, 27 Nov 2026 10:00:05 GMT', 5],
  [{}, 'Fri, 27 Nov 2026 09:00:00 GMT', 0],
  [{}, 'soon', undefined],
  [{}, null, undefined],
  [{ retryAfterSeconds: 0.5 }, '1', 0.5],
])('the problem %j with Retry-After %j: %s seconds', (members, header, seconds) => {
  expect(errorOf(429, problem({ type: TYPE, ...members }), header, '', NOW).retryAfter).toBe(seconds);
});
