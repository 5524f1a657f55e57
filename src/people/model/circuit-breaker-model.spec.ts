import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import type { Signal } from './circuit-breaker.js';
import { BreakerModel, MODEL_OPERATIONS, type Outage } from './circuit-breaker-model.spec-support.js';

const outage: fc.Arbitrary<Outage> = fc.record({
  operations: fc.subarray(MODEL_OPERATIONS, { minLength: 1 }),
  signal: fc.oneof(
    fc.constantFrom<Signal>(
      { kind: 'unauthorized' },
      { kind: 'wrong-url' },
      { kind: 'unanswered', sent: true },
      { kind: 'unanswered', sent: false },
    ),
    fc.constantFrom(400, 402, 410, 451).map((status): Signal => ({ kind: 'rejected', status })),
    fc
      .option(fc.constantFrom(1_000, 90_000, 3_600_000), { nil: undefined })
      .map((retryAfterMs): Signal => ({ kind: 'rate-limited', retryAfterMs })),
  ),
});
const event = fc.oneof(
  { weight: 5, arbitrary: fc.record({ outage, ms: fc.constantFrom(1_000, 30_000, 600_000, 1_800_000) }) },
  { weight: 2, arbitrary: fc.constant('recovery' as const) },
  { weight: 1, arbitrary: fc.constant('crash' as const) },
);

test('an outage of any kind fails no one permanently, and everyone continues when it ends', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 8 }), fc.nat({ max: 2 }), (events, bad) => {
      const model = new BreakerModel({ good: 5, bad });
      for (const what of events) {
        if (what === 'crash') model.crash();
        else if (what === 'recovery') model.recover();
        else model.during(what.outage, what.ms);
        if (what === 'recovery') model.rearm();
      }
      model.recover();
    }),
    propertyRuns(0.6),
  );
});

test('people with their own faults cost the others at most one block of 15 s each', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 20 }), fc.nat(), (bad, good, seed) => {
      const model = new BreakerModel({ good, bad, seed });
      model.recover();
      const callsMs = 2 * (good + bad) * model.callMs;
      expect(model.othersFinishedAfterMs).toBeLessThanOrEqual(bad * 15_000 + callsMs);
    }),
    propertyRuns(),
  );
});
