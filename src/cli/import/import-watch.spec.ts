import type { ImportResponse } from '../../imports/report/import-view.js';
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

/** Watches an import that answers one after the other, the last for ever; an error is thrown. */
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

test('an upsert that a guard holds is at rest: nothing goes on by itself', async () => {
  expect(await watched([view('staging'), view('planned')])).toMatchObject({ ended: 'planned' });
});

test('a plan that somebody said is to be done passes on', async () => {
  const answers = [view('planned'), view('running'), view('completed')];
  expect(await watched(answers, { applied: true })).toMatchObject({ ended: 'completed' });
});

test('a service that is away for a while does not end the watch, and it is told', async () => {
  const away = new Unreachable('away');
  const { ended, written } = await watched([view('running'), away, away, view('completed')]);
  expect(ended).toBe('completed');
  expect(written.match(/does not answer/g)).toHaveLength(1);
});

test('a service that stays away for minutes ends it, and so does any other fault at once', async () => {
  const { ended, ms } = await watched([view('running'), new Unreachable('away')]);
  expect([ended, ms > 120_000]).toEqual(['away', true]);
  const refused = await watched([new CliFault('No import with this id is known.')]);
  expect([refused.ended, refused.ms]).toEqual(['No import with this id is known.', 0]);
});
