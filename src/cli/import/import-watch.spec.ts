import type { ImportResponse } from '../../imports/api/import-view.js';
import type { Api } from '../api/api.js';
import { CliFault, Unreachable } from '../api/cli-fault.js';
import { LiveLine } from '../output/progress.js';
import { watchImport } from './import-watch.js';

const view = (state: string, more = {}) =>
  ({
    id: 'i1',
    state,
    mode: 'upsert',
    dryRun: false,
    counts: { total: 2, pending: 1 },
    calls: { made: 1 },
    ...more,
  }) as unknown as ImportResponse;

/** Watches an import that returns these answers in turn, and repeats the last one; an error is thrown. */
async function watched(answers: (ImportResponse | Error)[], options = {}) {
  const left = [...answers];
  const get = async () => {
    const answer = left.length > 1 ? left.shift() : left[0];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  let [ms, written] = [0, ''];
  const pause = async (more: number) => {
    ms += more;
  };
  const live = new LiveLine({ write: (text: string) => (written += text) }, () => 0);
  const ended = await watchImport({ get } as unknown as Api, 'i1', live, { pause, ...options }).then(
    (one) => one.state as string,
    (error: Error) => error.message,
  );
  return { ended, ms, written };
}

test('the watch ends at a plan that needs confirmation, and at unclear columns', async () => {
  expect(await watched([view('staging'), view('planned')])).toMatchObject({ ended: 'planned' });
  expect(await watched([view('needs-mapping')], { applied: true })).toMatchObject({ ended: 'needs-mapping' });
});

test('the watch continues while a plan is being applied', async () => {
  const answers = [view('planned'), view('running'), view('completed')];
  expect(await watched(answers, { applied: true })).toMatchObject({ ended: 'completed' });
});

test('the watch reports an unavailable service once, and continues', async () => {
  const away = new Unreachable('away');
  const { ended, written } = await watched([view('running'), away, away, view('completed')]);
  expect(ended).toBe('completed');
  expect(written.match(/does not answer/g)).toHaveLength(1);
});

test('the watch fails after minutes without the service, and immediately on other errors', async () => {
  const { ended, ms } = await watched([view('running'), new Unreachable('away')]);
  expect([ended, ms > 120_000]).toEqual(['away', true]);
  const refused = await watched([new CliFault('No import with this id is known.')]);
  expect([refused.ended, refused.ms]).toEqual(['No import with this id is known.', 0]);
});

test('the watch reports a missing worker once', async () => {
  const idle = view('running', { etaUnknown: 'no-worker' });
  const { ended, written } = await watched([idle, idle, view('completed')]);
  expect([ended, written.match(/no worker process is running, so nothing is sent/g)]).toMatchObject([
    'completed',
    { length: 1 },
  ]);
});
