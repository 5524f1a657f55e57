import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client.js';
import { inSentence, labelOf } from '../../api/words.js';
import { Facts, Section } from '../../parts/layout.js';
import { Copyable, Moment, number } from '../../parts/values.js';
import { nameOf } from './person.js';
import { PersonLink } from './person-link.js';

type Person = Schemas['PersonResponse'];
type Trace = Schemas['TraceResponse'];

/** The desired state of the EHR. */
export function Wanted({ person, wanted }: { person: Person; wanted: Trace['wanted'] }) {
  return (
    <Section card title="Desired by the EHR">
      <Facts
        facts={{
          'Desired state': wanted.present ? 'on the platform' : 'deleted',
          'External id': <Copyable text={person.externalId} name="the external id" />,
          Name: nameOf(person),
          Email: person.email ?? (wanted.hasEmail && 'stored, not shown'),
          ...(person.kind === 'client' && { 'Providers, primary first': providers(wanted.providers) }),
        }}
      />
    </Section>
  );
}

function providers(all: Trace['wanted']['providers']): ReactNode {
  if (all.length === 0) return null;
  return (
    <ul className="plain">
      {all.map(({ externalId, mirrored }) => (
        <li key={externalId}>
          <PersonLink withId person={{ kind: 'provider', externalId }} />
          {!mirrored && ' (not on the platform yet)'}
        </li>
      ))}
    </ul>
  );
}

const CLAIMS = {
  held: 'this person',
  free: 'nobody yet',
  taken: 'another person of the EHR',
};

const ORIGINS = {
  created: 'created by this service',
  linked: 'found by its email',
  event: 'named by an event',
  resolved: 'linked manually',
};

/** The known state on the platform. Leaves out rare facts that do not apply. */
export function Known({ person, trace: { known } }: { person: Person; trace: Trace }) {
  const { platformUserId, unsettledCreate, checkedAbsentAt, appliedProviders, emailClaim, failures } = known;
  const { notPushable } = person.sync;
  return (
    <Section card title="Known on the platform">
      <Facts
        facts={{
          'Platform user': platformUserId && <Copyable text={platformUserId} name="the platform user id" />,
          Origin: platformUserId && person.origin && ORIGINS[person.origin],
          'Email reserved for': emailClaim && CLAIMS[emailClaim],
          'Email last unknown to the platform': <Moment at={checkedAbsentAt} />,
          ...(person.kind === 'client' && { 'Providers on the platform (user ids)': appliedProviders?.join(', ') }),
          ...(unsettledCreate && {
            'Create without an answer, looked up': <Moment at={unsettledCreate.lookUpAt} exact />,
          }),
          ...(failures > 0 && { 'Consecutive failures': number(failures) }),
          ...(notPushable.length > 0 && { 'Outdated on the platform (no API to change it)': named(notPushable) }),
          ...(person.inviteUrl && { Invitation: <Copyable text={person.inviteUrl} name="the invitation" /> }),
        }}
      />
    </Section>
  );
}

const named = (fields: readonly string[]) =>
  fields.map((field) => inSentence(labelOf('personField', field))).join(', ');
