import type { Schemas } from '../api/client.js';
import { useHealth } from '../api/health.js';
import { useSession } from '../api/session.js';
import { Moment, number } from '../parts/values.js';

type Cause = Schemas['CauseResponse'];

/** A hold has its own banner, and keys that expire soon still work. */
const NO_FAILURES: readonly string[] = ['sending-held', 'sending-held-by-setting', 'keys-expire'];

/** False for work that waits for a decision, too. */
const isFailure = ({ part, code }: Cause) => part !== 'decisions' && !NO_FAILURES.includes(code);

/** Shows what fails, since when, and what to do, at the top of every page. Only operators can act on it. */
export function Faults() {
  const { data, error } = useHealth();
  const session = useSession();
  const causes = data?.causes.filter(isFailure) ?? [];
  const [first, ...others] = causes;
  if (!error && !first) return null;
  // While the service cannot determine the signed-in user, the reader may be an operator.
  const isOperator = session.data?.caller.scopes.includes('operations') ?? session.isError;
  const isGrave = !!error || causes.some(({ status, affects }) => status === 'down' || affects.length > 0);
  return (
    <section className="faults" aria-label="Faults" aria-live="polite" data-tone={isGrave ? 'bad' : 'warn'}>
      {error ? (
        <p>{error.message}</p>
      ) : isOperator && first ? (
        <>
          <Fault {...first} />
          {others.length > 0 && (
            <details>
              <summary>{number(others.length)} more</summary>
              {others.map((cause) => (
                <Fault key={cause.code} {...cause} />
              ))}
            </details>
          )}
        </>
      ) : (
        <p>
          <strong>Some parts of notebridge do not work.</strong> Ask an operator if this stops your work.
        </p>
      )}
    </section>
  );
}

function Fault({ part, cause, action, since, hasKnownStart, affects }: Cause) {
  return (
    <p>
      <code>{part}</code> <strong>{cause}</strong> {action} {hasKnownStart ? 'Since' : 'First seen'}{' '}
      <Moment at={since} exact />.{affects.length > 0 && ` Affected: ${affects.join(', ')}.`}
    </p>
  );
}
