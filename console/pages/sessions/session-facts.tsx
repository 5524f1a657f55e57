import type { Schemas } from '../../api/client.js';
import { Facts } from '../../parts/layout.js';
import { NotShown } from '../../parts/notes.js';
import { StateOf } from '../../parts/state.js';
import { Copyable, duration, Moment, number } from '../../parts/values.js';
import { PersonLink, PersonLinks } from '../people/person-link.js';
import { Template } from './note-text.js';

type Session = Schemas['SessionResponse'];

const SOURCES = { platform: 'according to the platform', events: 'according to its events' } as const;

/** The facts of a session, without its texts. */
export function SessionFacts({ session }: { session: Session }) {
  const {
    id,
    sessionId,
    provider,
    providerUserId,
    clients,
    noteTemplates,
    state,
    stateFrom,
    error,
    goneAt,
    unreadable,
    incomplete,
    notesRevision,
  } = session;
  return (
    <section className="card" aria-label="Facts">
      <p>
        <StateOf of="sessionState" state={state} /> {stateFrom && SOURCES[stateFrom]}
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
      <NotShown parts={unreadable} />
      <Facts
        facts={{
          Clients: <PersonLinks withId people={clients.map((externalId) => ({ kind: 'client', externalId }))} />,
          Provider: provider ? (
            <PersonLink withId person={{ kind: 'provider', externalId: provider }} />
          ) : (
            providerUserId && (
              <>
                Unknown to the EHR. Platform user: <Copyable text={providerUserId} name="the platform user" />
              </>
            )
          ),
          Date: <Moment at={session.date} exact />,
          Appointment: session.partnerAppointmentId,
          'Note templates': <Templates templates={noteTemplates} />,
          'Session length': length(session.sessionDurationMs),
          'Recording length': length(session.recordingDurationMs),
          'AI notes': aiNotes(session),
          Notes: notesRevision === 0 ? 'none yet' : `revision ${number(notesRevision)}`,
          'Last event': <Moment at={session.lastEventAt} />,
          'Last fetched': <Moment at={session.fetchedAt} />,
          Changed: <Moment at={session.updatedAt} />,
          Id: <Copyable text={id} name="the id" />,
          'Id on the platform': sessionId && <Copyable text={sessionId} name="the platform’s id" />,
        }}
      />
    </section>
  );
}

function Templates({ templates }: { templates: Session['noteTemplates'] }) {
  if (templates.length === 0) return null;
  return (
    <ul className="plain">
      {templates.map(({ id, name }) => (
        <li key={id}>
          <Template id={id} name={name} />
        </li>
      ))}
    </ul>
  );
}

const length = (ms: number | null) => (ms === null ? null : duration(ms / 1_000));

function aiNotes({ aiNotesEnabled, aiNotesFinal }: Session): string | null {
  if (aiNotesEnabled === null) return null;
  return `${aiNotesEnabled ? 'on' : 'off'}${aiNotesFinal ? '' : ', may still change'}`;
}
