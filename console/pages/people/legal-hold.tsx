import { api, type Schemas } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Field } from '../../parts/field.js';
import { Section } from '../../parts/layout.js';
import { Moment } from '../../parts/values.js';

type Person = Schemas['PersonResponse'];

/** Everyone sees the legal hold of a client; administrators release it. */
export function LegalHold({ person: { externalId, legalHold } }: { person: Person }) {
  const mayChange = useScopes().includes('admin');
  if (!legalHold) return null;
  return (
    <Section card title="Legal hold">
      <p>
        Since <Moment at={legalHold.since} exact />. Everything about this client is kept. The audit log shows the
        reason.
      </p>
      {mayChange && (
        <ConfirmedAction
          label="Release the hold"
          title={`Release the legal hold on ${externalId}?`}
          isDangerous
          run={() => api.DELETE('/v1/clients/{externalId}/legal-hold', { params: { path: { externalId } } })}
        >
          <p>
            Retention applies again, and a requested deletion of this client is carried out now. It cannot be undone.
          </p>
        </ConfirmedAction>
      )}
    </Section>
  );
}

/** Lets administrators set a legal hold on a client without one. */
export function SetLegalHold({ person: { externalId, legalHold } }: { person: Person }) {
  const mayChange = useScopes().includes('admin');
  if (legalHold || !mayChange) return null;
  return (
    <ConfirmedAction
      label="Set a legal hold"
      title={`Hold everything about ${externalId}?`}
      run={(given) =>
        api.PUT('/v1/clients/{externalId}/legal-hold', {
          params: { path: { externalId } },
          body: { reason: given.get('reason')?.toString().trim() ?? '' },
        })
      }
    >
      <p>Everything about this client is kept until the release. Retention and deletions have no effect.</p>
      <Field
        label="Reason (a case or ticket id, no names)"
        name="reason"
        required
        pattern="\s*[A-Za-z0-9._:\/\|\-]{1,128}\s*"
        title="The id of a case or a ticket, or a code; no name"
      />
    </ConfirmedAction>
  );
}
