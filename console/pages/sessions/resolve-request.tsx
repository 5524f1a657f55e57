import { api, type Schemas } from '../../api/client.js';
import { Choices } from '../../parts/choices.js';
import { Field } from '../../parts/field.js';
import { Facts, Section } from '../../parts/layout.js';
import { Copyable } from '../../parts/values.js';

type Action = Schemas['ResolveSessionRequest']['action'];

const LABELS: Record<Action, string> = { link: 'Link', create: 'Send again', abandon: 'Abandon request' };

/** A request without an answer: the appointment to look for on the platform, and the choices with their effects. */
export function ResolveRequest({ session }: { session: Schemas['SessionResponse'] }) {
  const { id, correlationId, choices } = session;
  const resolve = (action: Action, given: FormData) => {
    const sessionId = given.get('sessionId')?.toString().trim();
    return api.POST('/v1/sessions/{id}/resolve', { params: { path: { id } }, body: { action, sessionId } });
  };
  return (
    <Section card title="Did the platform create this session?">
      <p>
        The request was sent, but the platform did not answer, so it may or may not have created the session. Look for
        the appointment on the platform, then choose.
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
    title="The session's id on the platform"
    maxLength={512}
  />
);
