import { Link } from 'wouter';
import { api, type Schemas } from '../../api/client.js';
import { Choices } from '../../parts/choices.js';
import { Field } from '../../parts/field.js';
import { DataTable, Facts, Section } from '../../parts/layout.js';
import { Read } from '../../parts/read.js';
import { SESSION, State } from '../../parts/state.js';
import { Moment } from '../../parts/values.js';

type Evidence = Schemas['RequestEvidenceResponse'];
type Action = Schemas['ResolveSessionRequest']['action'];

const LABELS: Record<Action, string> = { link: 'Link', create: 'Send it again', abandon: 'Give it up' };

/** A request that got no answer: what is known of it, and what each way to resolve it does. */
export function ResolveRequest({ id }: { id: string }) {
  const params = { path: { id } };
  const resolve = (action: Action, given: FormData) => {
    const sessionId = given.get('sessionId')?.toString().trim();
    return api.POST('/v1/sessions/{id}/resolve', { params, body: { action, sessionId } });
  };
  return (
    <Section card title="What became of this request?">
      <p>
        It was sent, and no answer came: the platform may have made the session or not. Look there for the provider and
        the date, then say what you found.
      </p>
      <Read name={['request', id]} call={() => api.GET('/v1/sessions/{id}/request', { params })}>
        {(evidence) => (
          <>
            <Known evidence={evidence} />
            <Choices
              what="the request for this session"
              choices={evidence.choices}
              labels={LABELS}
              scope="sessions:write"
              dangerous="abandon"
              fields={{ link: <SessionToLink found={evidence.found} /> }}
              run={resolve}
            />
          </>
        )}
      </Read>
    </Section>
  );
}

function Known({ evidence }: { evidence: Evidence }) {
  const { why, found, lookedFor, earlierUnknown } = evidence;
  return (
    <>
      {why && (
        <p>
          <strong>Why it is not settled by itself:</strong> {why}
        </p>
      )}
      <Facts
        facts={{
          'Asked for': <Moment at={evidence.requestedAt} exact />,
          Sent: <Moment at={evidence.attemptedAt} exact />,
          'Appointment that events must name': <code>{lookedFor}</code>,
          'An earlier attempt': earlierUnknown && 'may have made a session, too',
        }}
      />
      <h3>Sessions with this appointment</h3>
      {found.length === 0 ? (
        <p className="quiet">No event has named one. The platform may have one all the same.</p>
      ) : (
        <DataTable
          caption="Sessions with this appointment"
          rows={found}
          keyOf={({ sessionId }) => sessionId}
          columns={[
            ['On the platform', ({ sessionId }) => <code>{sessionId}</code>],
            ['Here', ({ session }) => <Link href={`/sessions/${session}`}>{session}</Link>],
            ['State', ({ state }) => <State tone={SESSION[state]}>{state}</State>],
            ['Known since', ({ knownSince }) => <Moment at={knownSince} exact />],
            ['Is it this one?', ({ why: verdict }) => verdict],
          ]}
        />
      )}
    </>
  );
}

/** The only session that fits is named at once. */
function SessionToLink({ found }: { found: Evidence['found'] }) {
  const [fitting, ...others] = found.filter(({ verdict }) => verdict === 'fits');
  return (
    <>
      <Field
        label="Id of the session on the platform"
        name="sessionId"
        required
        pattern=".*\S.*"
        title="Its id there"
        maxLength={512}
        list="resolve-found"
        defaultValue={others.length === 0 ? fitting?.sessionId : undefined}
      />
      <datalist id="resolve-found">
        {found.map(({ sessionId, why }) => (
          <option key={sessionId} value={sessionId}>
            {why}
          </option>
        ))}
      </datalist>
    </>
  );
}
