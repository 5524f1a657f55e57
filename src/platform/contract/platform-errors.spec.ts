import { Problem } from '../../http/problem/problem.js';
import { PlatformError, type PlatformErrorKind, platformProblem } from './platform-errors.js';

const problem = (kind: PlatformErrorKind, facts = {}): Problem => {
  const made = platformProblem(new PlatformError(kind, 'createSession', facts));
  if (!(made instanceof Problem)) throw new Error('no problem was made');
  return made;
};

it.each<[PlatformErrorKind, number, string]>([
  ['rejected', 400, 'platform-rejected'],
  ['not-found', 404, 'not-on-platform'],
  ['not-configured', 501, 'not-configured'],
  ['unauthorized', 503, 'platform-unauthorized'],
  ['rate-limited', 503, 'platform-rate-limited'],
  ['unreachable', 503, 'platform-unreachable'],
  ['held', 503, 'sending-held'],
  ['unknown-outcome', 504, 'platform-unclear'],
])('%s is answered %i %s', (kind, status, type) => {
  expect(problem(kind)).toMatchObject({ status, type });
});

it('the message of the platform is next to the detail of a rejected call, not in it', () => {
  const made = problem('rejected', { status: 400, platformMessage: 'Ada Byron has no access.' });
  expect(made.details()).toMatchObject({ platformMessage: 'Ada Byron has no access.' });
  expect(made.message).not.toContain('Ada');
});

it('a rate limit passes its wait on in seconds', () => {
  expect(problem('rate-limited', { retryAfterMs: 12_500 }).headers()).toEqual({ 'retry-after': '13' });
  expect(problem('rate-limited').headers()).toEqual({ 'retry-after': '5' });
});

it('a missing setting has its name in the capabilities', () => {
  const missing = ['operations.createSession.path'];
  expect(problem('not-configured', { missing }).details()).toMatchObject({
    missing: ['PLATFORM_CONTRACT: operations.createSession.path'],
  });
});

it('other errors are unchanged', () => {
  const fault = new TypeError('ours');
  expect(platformProblem(fault)).toBe(fault);
});
