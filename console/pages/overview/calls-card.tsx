import type { Schemas } from '../../api/client.js';
import { DataTable } from '../../parts/layout.js';
import { Moment, number } from '../../parts/values.js';
import { Figures } from './figures.js';

/** How much of the platform's limit is in use, and the last six hours. */
export function CallsCard({ calls }: { calls: Schemas['CallsResponse'] | null }) {
  return (
    <Figures title="Calls to the platform's user management" of={calls}>
      {({ used, limit, windowSeconds, blockedUntil, history }) => (
        <>
          <p>
            <label htmlFor="window">
              {number(used)} of {number(limit)}
            </label>{' '}
            in the last {number(windowSeconds)} seconds{' '}
            <meter id="window" min={0} max={limit} high={limit * 0.9} value={used} />
          </p>
          {blockedUntil && (
            <p>
              The platform asked for patience: no call leaves until <Moment at={blockedUntil} exact />.
            </p>
          )}
          <CallsChart history={history} />
        </>
      )}
    </Figures>
  );
}

type Interval = Schemas['CallIntervalResponse'];

/** In the units of the drawing, which is stretched to the width that there is. */
const BAR = 10;
const HEIGHT = 100;

const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });

/** Calls in each five minutes, those that went wrong at the foot of their bar. The figures stand in a table below. */
function CallsChart({ history }: { history: readonly Interval[] }) {
  const highest = Math.max(1, ...history.map(({ calls }) => calls));
  const wrong = ({ refused, failed }: Interval) => refused + failed;
  const heightOf = (calls: number) => (calls / highest) * HEIGHT;
  const total = history.reduce((sum, { calls }) => sum + calls, 0);
  const totalWrong = history.reduce((sum, interval) => sum + wrong(interval), 0);
  const summary = `${number(total)} calls in six hours, ${number(totalWrong)} of them refused or without an answer; at most ${number(highest)} in five minutes.`;
  const [first] = history;
  if (!first || total === 0) return <p className="quiet">There was no call in the last six hours.</p>;
  return (
    <figure className="chart">
      <svg viewBox={`0 0 ${history.length * BAR} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary}>
        <title>{summary}</title>
        {history.map((interval, at) => (
          <g key={interval.at}>
            <rect {...bar(at, heightOf(interval.calls))} className="calls" />
            <rect {...bar(at, heightOf(wrong(interval)))} className="wrong" />
          </g>
        ))}
      </svg>
      <div className="axis">
        <span>{TIME.format(new Date(first.at))}</span>
        <span>at most {number(highest)} in five minutes</span>
        <span>now</span>
      </div>
      <figcaption>
        {summary}
        <details>
          <summary>The figures</summary>
          <DataTable
            caption="Calls in each five minutes"
            rows={history.filter(({ calls }) => calls > 0)}
            keyOf={({ at }) => at}
            columns={[
              ['From', ({ at }) => TIME.format(new Date(at))],
              ['Calls', ({ calls }) => number(calls), 'number'],
              ['Refused', ({ refused }) => number(refused), 'number'],
              ['Without an answer', ({ failed }) => number(failed), 'number'],
            ]}
          />
        </details>
      </figcaption>
    </figure>
  );
}

const bar = (at: number, height: number) => ({ x: at * BAR + 1, width: BAR - 2, y: HEIGHT - height, height });
