import { requestChoices, verdictOf, whyUnknown } from './request-choices.js';

const request = { providerUserId: 'u-1', requestedAt: new Date(1_000) };
const candidate = { providerUserId: 'u-1', knownSince: new Date(2_000), isHeld: false };

test('a session is evidence for a request by appointment, provider and time, unless it is another request’s', () => {
  const verdict = (change: Partial<typeof candidate>) => verdictOf({ ...candidate, ...change }, request);
  expect(verdict({})).toBe('fits');
  expect(verdict({ providerUserId: 'u-2' })).toBe('other-provider');
  expect(verdict({ knownSince: new Date(999) })).toBe('known-before');
  expect(verdict({ isHeld: true })).toBe('held');
});

test('an outcome stays unknown for none, several, or one that may be an earlier attempt’s', () => {
  const reasons = [whyUnknown(0, false), whyUnknown(2, false), whyUnknown(1, true)];
  expect(reasons).toEqual([
    expect.stringContaining('No event'),
    expect.stringContaining('several'),
    expect.stringContaining('earlier attempt'),
  ]);
});

test('every way to resolve is offered for an unknown outcome, giving up for one that waits, none else', () => {
  const offered = (...request: Parameters<typeof requestChoices>) =>
    requestChoices(...request).map(({ action }) => action);
  expect(offered('Unknown', false)).toEqual(['link', 'create', 'abandon']);
  expect(offered('Requested', false)).toEqual(['abandon']);
  expect(offered('Requested', true)).toEqual([]);
  expect(offered('Settled', false)).toEqual([]);
});
