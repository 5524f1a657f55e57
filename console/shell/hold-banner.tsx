import { Link } from 'wouter';
import { useSending } from '../parts/sending.js';
import { Moment } from '../parts/values.js';

/** Shows a hold of sending on every page. */
export function HoldBanner({ mayRelease }: { mayRelease: boolean }) {
  const { data } = useSending();
  if (!data?.held) return null;
  const { since, by, reason, heldBySetting } = data;
  return (
    <div className="note warn" role="status">
      <p>
        <strong>Sending to the platform is held</strong>
        {heldBySetting && ' by the setting HOLD_SENDING'}
        {since && !heldBySetting && (
          <>
            {' '}
            since <Moment at={since} exact /> by <code>{by}</code> (<code>{reason}</code>)
          </>
        )}
        . The platform is only read; changes wait. {mayRelease && <Link href="/">Release it on the overview</Link>}
      </p>
    </div>
  );
}
