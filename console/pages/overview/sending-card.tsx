import { api } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Field } from '../../parts/field.js';
import { Section } from '../../parts/layout.js';
import { useSending } from '../../parts/sending.js';

/** Holds and releases what goes to the platform. Only administrators may. */
export function SendingCard() {
  const mayChange = useScopes().includes('admin');
  const { data } = useSending();
  if (!data || !mayChange) return null;
  const { held, heldBySetting, restored, since } = data;
  const set = (body: { held: boolean; reason?: string; restored: boolean }) => api.PUT('/v1/sending', { body });
  return (
    <Section card title="Sending">
      <p>
        {heldBySetting
          ? 'HOLD_SENDING is true: remove the setting and restart before the release.'
          : held
            ? restored
              ? 'The database was restored. Look people up, let the EHR send everyone again, then release.'
              : 'Lookups go to the platform; everything else waits for the release.'
            : 'People, sessions and files go to the platform.'}
      </p>
      {!since && (
        <ConfirmedAction
          label="Hold sending"
          title="Hold everything that goes to the platform?"
          isDangerous
          run={(given) =>
            set({
              held: true,
              reason: given.get('reason')?.toString().trim() ?? '',
              restored: given.has('restored'),
            })
          }
        >
          <p>Everything is still received and read. People and requests wait; recorder and uploads are refused.</p>
          <Field
            label="Reason"
            name="reason"
            required
            pattern="\s*[A-Za-z0-9._:\/\|\-]{1,128}\s*"
            title="The id of a case or a ticket, or a code; no name"
          />
          <Restored isRestored={false} />
        </ConfirmedAction>
      )}
      {held && !heldBySetting && (
        <ConfirmedAction
          label="Release"
          title="Release what waits for the platform?"
          isDangerous
          run={(given) => set({ held: false, restored: given.has('restored') })}
        >
          <p>What waited goes to the platform now. It cannot be taken back.</p>
          <Restored isRestored={restored} />
        </ConfirmedAction>
      )}
    </Section>
  );
}

function Restored({ isRestored }: { isRestored: boolean }) {
  return (
    <label>
      <input type="checkbox" name="restored" defaultChecked={isRestored} /> The database was restored: the EHR has to
      read the feed anew
    </label>
  );
}
