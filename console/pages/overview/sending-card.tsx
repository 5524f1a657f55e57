import { api } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Field } from '../../parts/field.js';
import { Section } from '../../parts/layout.js';
import { useSending } from '../../parts/sending.js';

/** Holds and releases sending to the platform. Only for administrators. */
export function SendingCard() {
  const mayChange = useScopes().includes('admin');
  const { data } = useSending();
  if (!data || !mayChange) return null;
  const { held, heldBySetting, since } = data;
  const set = (body: { held: boolean; reason?: string; restored?: boolean }) => api.PUT('/v1/sending', { body });
  return (
    <Section card title="Sending">
      <p>
        {heldBySetting
          ? 'The setting HOLD_SENDING is true. Remove it and restart, then release sending if an operator holds it too.'
          : held
            ? 'The platform is only read. To send changes again, release sending.'
            : 'Sending is on: people, sessions and files go to the platform.'}
      </p>
      {!since && (
        <ConfirmedAction
          label="Hold sending"
          title="Hold all sending to the platform?"
          isDangerous
          run={(given) => set({ held: true, reason: given.get('reason')?.toString().trim() ?? '' })}
        >
          <p>
            Webhooks and requests are still accepted, but changes and new sessions wait. The recorder and uploads are
            rejected.
          </p>
          <Field
            label="Reason (a ticket id or a code, no names)"
            name="reason"
            required
            pattern="\s*[A-Za-z0-9._:\/\|\-]{1,128}\s*"
            title="A ticket id or a code; no names"
          />
        </ConfirmedAction>
      )}
      {held && !heldBySetting && (
        <ConfirmedAction
          label="Release sending"
          title="Release sending to the platform?"
          isDangerous
          run={(given) => set({ held: false, restored: given.has('restored') })}
        >
          <p>All waiting changes go to the platform now. This cannot be undone.</p>
          <label>
            <input type="checkbox" name="restored" /> The database was restored from a backup, so clients without an
            email need a review, and the EHR must read the event feed from the beginning
          </label>
        </ConfirmedAction>
      )}
    </Section>
  );
}
