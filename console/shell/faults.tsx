import { useHealth } from '../api/health.js';
import { Moment } from '../parts/values.js';

/** The faults that stop other parts, at the top of every page. */
export function Faults() {
  const { data, error } = useHealth();
  const grave = data?.causes.filter(({ status, affects }) => status === 'down' || affects.length > 0) ?? [];
  if (!error && grave.length === 0) return null;
  return (
    <section className="faults" aria-label="Faults" aria-live="polite">
      {error ? (
        <p>{error.message}</p>
      ) : (
        grave.map(({ code, cause, action, since, affects }) => (
          <p key={code}>
            <strong>{cause}</strong> {action} Since <Moment at={since} exact />.
            {affects.length > 0 && ` Affected: ${affects.join(', ')}.`}
          </p>
        ))
      )}
    </section>
  );
}
