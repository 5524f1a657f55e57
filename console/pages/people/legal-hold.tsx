import { api, type Schemas } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Field } from '../../parts/field.js';
import { Section } from '../../parts/layout.js';
import { Moment } from '../../parts/values.js';

/** The legal hold of a client: everyone sees it, administrators set and release it. */
export function LegalHold({ person: { externalId, legalHold } }: { person: Schemas['PersonResponse'] }) {
  const mayChange = useScopes().includes('admin');
  const path = { externalId };
  if (!legalHold && !mayChange) return null;
  return (
    <Section card title="Legal hold">
      <p>
        {legalHold ? (
          <>
            Since <Moment at={legalHold.since} exact />. Everything about this client is kept. The audit log shows the
            reason.
          </>
        ) : (
          'There is no legal hold.'
        )}
      </p>
      {mayChange && legalHold && (
        <ConfirmedAction
          label="Release the hold"
          title={`Release the legal hold on ${externalId}?`}
          isDangerous
          run={() => api.DELETE('/v1/clients/{externalId}/legal-hold', { params: { path } })}
        >
          <p>
            Retention applies again, and a requested deletion of this client is carried out now. It cannot be undone.
          </p>
        </ConfirmedAction>
      )}
      {mayChange && !legalHold && (
        <ConfirmedAction
          label="Set a legal hold"
          title={`Hold everything about ${externalId}?`}
          run={(given) =>
            api.PUT('/v1/clients/{externalId}/legal-hold', {
              params: { path },
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
      )}
    </Section>
  );
}
