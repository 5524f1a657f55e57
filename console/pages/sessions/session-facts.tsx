import type { Schemas } from '../../api/client.js';
import { Facts } from '../../parts/layout.js';
import { StateOf } from '../../parts/state.js';
import { Copyable, duration, Moment, number } from '../../parts/values.js';

type Session = Schemas['SessionResponse'];

const SOURCES = { platform: 'newest answer', events: 'events' } as const;

/** The facts of a session, without its texts. */
export function SessionFacts({ session }: { session: Session }) {
  const { id, sessionId, state, stateFrom, error, goneAt, unreadable, incomplete, notesRevision } = session;
  return (
    <section className="card" aria-label="Facts">
      <p>
        <StateOf of="sessionState" state={state} /> {stateFrom && `according to the platform’s ${SOURCES[stateFrom]}`}
      </p>
      {error && (
        <p>
          <strong>Error:</strong> {error.message} <code>{error.code}</code>
        </p>
      )}
      {goneAt && (
        <p>
          <strong>No longer on the platform</strong> since <Moment at={goneAt} exact />.
        </p>
      )}
      {incomplete.length > 0 && (
        <p>
          <strong>Incomplete:</strong> parts of the platform’s answer could not be read ({incomplete.join(', ')}).
        </p>
      )}
      {unreadable && (
        <p>
          <strong>Not shown:</strong> {unreadable.join(', ')}; their stored value was changed or moved.
        </p>
      )}
      <Facts
        facts={{
          Id: <Copyable text={id} name="the id" />,
          'Id on the platform': sessionId && <Copyable text={sessionId} name="the platform’s id" />,
          Appointment: session.partnerAppointmentId,
          Provider: session.provider,
          Clients: session.clients.join(', '),
          'Note templates': session.noteTemplateIds.join(', '),
          Held: <Moment at={session.date} exact />,
          Recording: length(session.recordingDurationMs),
          Session: length(session.sessionDurationMs),
          'AI notes': aiNotes(session),
          Notes: notesRevision === 0 ? 'none yet' : `revision ${number(notesRevision)}`,
          'Last event': <Moment at={session.lastEventAt} />,
          'Last fetched': <Moment at={session.fetchedAt} />,
          Changed: <Moment at={session.updatedAt} />,
        }}
      />
    </section>
  );
}

const length = (ms: number | null) => (ms === null ? null : duration(ms / 1_000));

function aiNotes({ aiNotesEnabled, aiNotesFinal }: Session): string | null {
  if (aiNotesEnabled === null) return null;
  return `${aiNotesEnabled ? 'on' : 'off'}${aiNotesFinal ? '' : ', may still change'}`;
}
