import type { Schemas } from '../../api/client.js';
import { DataTable } from '../../parts/layout.js';
import { Moment, number, TimeOfDay } from '../../parts/values.js';
import { Figures } from './figures.js';

/** How much of the platform's limit is in use, and the last six hours. */
export function CallsCard({ calls }: { calls: Schemas['CallsResponse'] | null }) {
  return (
    <Figures title="User-management API usage" of={calls}>
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
              The platform answered 429: no call is sent until <Moment at={blockedUntil} exact />.
            </p>
          )}
          <CallsChart history={history} />
        </>
      )}
    </Figures>
  );
}

type Interval = Schemas['CallIntervalResponse'];

/** In units of the drawing, which is stretched to the available width. */
const BAR = 10;
const HEIGHT = 100;

/** Calls to the platform in intervals of five minutes; failed ones are at the foot of each bar. A table below has the data. */
function CallsChart({ history }: { history: readonly Interval[] }) {
  const highest = Math.max(1, ...history.map(({ calls }) => calls));
  const wrong = ({ refused, failed }: Interval) => refused + failed;
  const heightOf = (calls: number) => (calls / highest) * HEIGHT;
  const total = history.reduce((sum, { calls }) => sum + calls, 0);
  const totalWrong = history.reduce((sum, interval) => sum + wrong(interval), 0);
  const summary = `${number(total)} calls in six hours, ${number(totalWrong)} of them rejected or without an answer. Peak: ${number(highest)} in 5 min.`;
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
        <span>
          <TimeOfDay at={first.at} />
        </span>
        <span>Peak: {number(highest)} in 5 min</span>
        <span>now</span>
      </div>
      <figcaption>
        {summary}
        <details>
          <summary>Show data</summary>
          <DataTable
            caption="Calls to the platform in intervals of five minutes"
            rows={history.filter(({ calls }) => calls > 0)}
            keyOf={({ at }) => at}
            columns={[
              ['From', ({ at }) => <TimeOfDay at={at} />],
              ['Calls', ({ calls }) => number(calls), 'number'],
              ['Rejected', ({ refused }) => number(refused), 'number'],
              ['Without an answer', ({ failed }) => number(failed), 'number'],
            ]}
          />
        </details>
      </figcaption>
    </figure>
  );
}

const bar = (at: number, height: number) => ({ x: at * BAR + 1, width: BAR - 2, y: HEIGHT - height, height });
