import { api } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { ActionButton } from '../../parts/action.js';
import { Head, Section } from '../../parts/layout.js';
import { LacksScope } from '../../parts/notes.js';
import { Loaded, useRead } from '../../parts/read.js';
import { SessionTexts } from './content/session-texts.js';
import { ResolveRequest } from './resolve-request.js';
import { SessionFacts } from './session-facts.js';
import { SessionNotes } from './session-notes.js';
import { SessionTimeline } from './session-timeline.js';

/** One session: its facts, the choices for a request without an answer, its notes and its timeline. */
export function SessionDetail({ id }: { id: string }) {
  const scopes = useScopes();
  const query = useRead(['session-of-notes', id], () => api.GET('/v1/sessions/{id}', { params: { path: { id } } }));
  const mayRead = scopes.includes('notes:read');
  const { partnerAppointmentId, sessionId } = query.data ?? {};
  return (
    <>
      <Head
        back={['/sessions', 'All sessions']}
        title={`Session${partnerAppointmentId ? ` of appointment ${partnerAppointmentId}` : ''}`}
      >
        {sessionId && scopes.includes('sessions:write') && (
          <ActionButton
            label="Refresh"
            done="The session will soon be fetched from the platform again."
            run={() => api.POST('/v1/sessions/refreshes', { body: { session: id } })}
          />
        )}
      </Head>
      <Loaded query={query}>
        {(session) => (
          <>
            <SessionFacts session={session} />
            {session.state === 'Unknown' && <ResolveRequest session={session} />}
            <Section title="Notes">{mayRead ? <SessionNotes id={id} /> : <LacksScope scope="notes:read" />}</Section>
            {mayRead && <SessionTexts id={id} />}
            <SessionTimeline id={id} />
          </>
        )}
      </Loaded>
    </>
  );
}
