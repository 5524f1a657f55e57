import { api, type Schemas } from '../../api/client.js';
import { Choices } from '../../parts/choices.js';
import { Field } from '../../parts/field.js';
import { Facts, Section } from '../../parts/layout.js';
import { Copyable } from '../../parts/values.js';

type Action = Schemas['ResolveSessionRequest']['action'];

const LABELS: Record<Action, string> = { link: 'Link', create: 'Send it again', abandon: 'Give it up' };

/** A request that got no answer: what to look for on the platform, and what each way to resolve it does. */
export function ResolveRequest({ session }: { session: Schemas['SessionResponse'] }) {
  const { id, correlationId, choices } = session;
  const resolve = (action: Action, given: FormData) => {
    const sessionId = given.get('sessionId')?.toString().trim();
    return api.POST('/v1/sessions/{id}/resolve', { params: { path: { id } }, body: { action, sessionId } });
  };
  return (
    <Section card title="What became of this request?">
      <p>
        It was sent, and no answer came: the platform may have made the session or not. Look there for the appointment,
        then say what you found.
      </p>
      <Facts
        facts={{
          'Appointment on the platform': correlationId && <Copyable text={correlationId} name="the appointment" />,
        }}
      />
      <Choices
        what="the request for this session"
        choices={choices}
        labels={LABELS}
        scope="sessions:write"
        dangerous="abandon"
        fields={{ link: SESSION_TO_LINK }}
        run={resolve}
      />
    </Section>
  );
}

const SESSION_TO_LINK = (
  <Field
    label="Id of the session on the platform"
    name="sessionId"
    required
    pattern=".*\S.*"
    title="Its id there"
    maxLength={512}
  />
);
