import { useQuery } from '@tanstack/react-query';
import { ProblemError, type Schemas } from '../api/client.js';
import { usePolling } from '../api/queries.js';
import { Moment } from '../parts/values.js';

type Health = Pick<Schemas['HealthReportResponse'], 'causes'>;

/** How often to read health; who may see the overview gets changes within seconds. */
const POLL_INTERVAL_MS = 10_000;

const UNREACHABLE = 'The service cannot be reached. Check that a process with the role api is running.';

/** Public, because a sign-in needs a healthy service, too. An unhealthy one answers 503 with the same body. */
async function readHealth(): Promise<Health> {
  const answer = await fetch('/health/ready').catch(() => undefined);
  const health: unknown = await answer?.json().catch(() => undefined);
  if (Array.isArray((health as Health | undefined)?.causes)) return health as Health;
  throw new ProblemError(0, 'unreachable', UNREACHABLE);
}

/** The faults because of which other parts do not work, at the top of every page. */
export function Faults() {
  const refetchInterval = usePolling(POLL_INTERVAL_MS);
  const { data, error } = useQuery({ queryKey: ['health'], queryFn: readHealth, refetchInterval, retry: false });
  const grave = data?.causes.filter(({ status, affects }) => status === 'down' || affects.length > 0) ?? [];
  if (!error && grave.length === 0) return null;
  return (
    <section className="faults" aria-label="Faults" aria-live="polite">
      {error ? (
        <p>{error.message}</p>
      ) : (
        grave.map(({ code, cause, action, since, affects }) => (
          <p key={code}>
            <strong>{cause}</strong> {action} Since <Moment at={since} />.
            {affects.length > 0 && ` Affected: ${affects.join(', ')}.`}
          </p>
        ))
      )}
    </section>
  );
}
