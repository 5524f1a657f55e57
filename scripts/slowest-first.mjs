// The order in which Jest begins the suites. On a clone without measured times it begins with the largest file, so that
// suites of few lines that wait or work for minutes would be the last, and run alone. These go first; all others follow
// as Jest has them.
import path from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** From the slowest on, as measured on two cores. */
const SLOWEST = [
  'test/privacy.e2e-spec.ts',
  'test/faults.e2e-spec.ts',
  'test/hot-queries.e2e-spec.ts',
  'test/cli.e2e-spec.ts',
  'test/compliance.e2e-spec.ts',
  'test/database-silent.e2e-spec.ts',
  'test/people-address.e2e-spec.ts',
  'test/readme.e2e-spec.ts',
  'test/bulk-plan.e2e-spec.ts',
  'test/embedded-postgres.e2e-spec.ts',
  'src/people/reconcile/reconciler.spec.ts',
  'test/redis-lost.e2e-spec.ts',
  'test/bulk-steering.e2e-spec.ts',
  'test/reconcile-limit.e2e-spec.ts',
  'test/fuzz.e2e-spec.ts',
  'test/demo.e2e-spec.ts',
  'test/reconcile-refusals.e2e-spec.ts',
  'test/reconcile-outage.e2e-spec.ts',
  'src/imports/parse/reading-work.fuzz.spec.ts',
  'test/data-key-missing.e2e-spec.ts',
  'test/audit-seals.e2e-spec.ts',
];

const placeOf = ({ path: file, context }) => {
  const place = SLOWEST.indexOf(path.relative(context.config.rootDir, file));
  return place < 0 ? SLOWEST.length : place;
};

export default class SlowestFirst extends Sequencer {
  sort(tests) {
    return super.sort(tests).sort((one, other) => placeOf(one) - placeOf(other));
  }
}
