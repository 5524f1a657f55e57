import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { HEALTH_TEXTS } from '../../monitoring/health-texts.js';
import { REFUSALS, type RefusalCause, refusalText } from '../../words/refusal-words.js';
import { added, NOTHING, type ReceiverState, reasonsOf } from './refusals.js';

const NOW = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const CAUSES = Object.keys(REFUSALS) as RefusalCause[];

/** What a process sees when it refuses requests for these causes. */
const refused = (...causes: RefusalCause[]) =>
  causes.reduce<ReceiverState>(
    (state, cause) => added(state, { genuineAt: null, refusals: { [cause]: { count: 1, lastAt: NOW } } }),
    NOTHING,
  );
const genuine: ReceiverState = { genuineAt: new Date(NOW), refusals: {} };
const codes = (state: ReceiverState, now = NOW) => reasonsOf(state, now).map(({ code }) => code);

describe('added', () => {
  it('sums the refusals of two processes', () => {
    const sum = added(refused('missing-signature', 'stale'), refused('missing-signature'));
    expect(sum.refusals).toMatchObject({ 'missing-signature': { count: 2 }, stale: { count: 1 } });
  });

  it('clears the earlier refusals at a genuine delivery', () => {
    expect(added(refused('stale'), genuine)).toEqual(genuine);
    expect(added(genuine, refused('stale'))).toMatchObject({ genuineAt: genuine.genuineAt, refusals: { stale: {} } });
  });

  it('never puts the time of the last genuine delivery back, because a process may write late', () => {
    const late: ReceiverState = { genuineAt: new Date(NOW - 1), refusals: {} };
    expect(added(genuine, late)).toEqual(genuine);
    expect(added(late, genuine)).toEqual(genuine);
  });

  it('has the same result however many times a process writes', () => {
    const state = fc.oneof(
      fc.nat({ max: 3 }).map((ms): ReceiverState => ({ genuineAt: new Date(NOW + ms), refusals: {} })),
      fc.array(fc.constantFrom(...CAUSES), { maxLength: 5 }).map((causes) => refused(...causes)),
    );
    fc.assert(
      fc.property(state, state, state, (one, two, three) => {
        expect(added(added(one, two), three)).toEqual(added(one, added(two, three)));
      }),
      propertyRuns(),
    );
  });
});

describe('reasonsOf', () => {
  it.each(CAUSES.filter((cause) => REFUSALS[cause].code !== 'webhook-clock'))('needs three refusals: %s', (cause) => {
    expect(codes(refused(cause, cause))).toEqual([]);
    expect(codes(refused(cause, cause, cause))).toEqual([REFUSALS[cause].code]);
  });

  it.each(['stale', 'future'] as const)('needs one correctly signed delivery that is refused: %s', (cause) => {
    expect(codes(refused(cause))).toEqual(['webhook-clock']);
    expect(codes(refused(cause, 'wrong-signature'))).toEqual(['webhook-clock']);
  });

  it('leaves out refusals older than an hour', () => {
    const state = refused('stale', 'wrong-path', 'wrong-path', 'wrong-path');
    expect(codes(state, NOW + HOUR_MS - 1)).toEqual(['webhook-address', 'webhook-clock']);
    expect(codes(state, NOW + HOUR_MS)).toEqual([]);
  });

  it('has one reason for each code, with the most frequent cause and the number of all', () => {
    const state = refused('missing-timestamp', 'missing-signature', 'missing-signature', 'wrong-signature');
    expect(reasonsOf(state, NOW)).toEqual([
      { code: 'webhook-headers', values: { count: 3, ...refusalText({ cause: 'missing-signature' }) } },
      { code: 'webhook-secret', values: { count: 1, ...refusalText({ cause: 'wrong-signature' }) } },
    ]);
  });
});

describe('the texts of refusals', () => {
  it('say how far the clock is off', () => {
    expect(refusalText({ cause: 'stale', seconds: 120 }).fault).toContain('120 seconds older');
    expect(refusalText({ cause: 'future', seconds: 301 }).fault).toContain('301 seconds ahead');
  });

  it('belong to a code of health each', () => {
    for (const cause of CAUSES) expect(HEALTH_TEXTS).toHaveProperty(REFUSALS[cause].code);
  });
});
