import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Schemas } from '../../api/client.js';
import { Facts, Section } from '../../parts/layout.js';
import { Copyable, Moment, number } from '../../parts/values.js';
import { nameOf, personAddress } from './person.js';

type Person = Schemas['PersonResponse'];
type Trace = Schemas['TraceResponse'];

/** What the EHR asks for. */
export function Wanted({ person, wanted }: { person: Person; wanted: Trace['wanted'] }) {
  return (
    <Section card title="Wanted by the EHR">
      <Facts
        facts={{
          'Is to be': wanted.present ? 'on the platform' : 'deleted',
          'External id': <Copyable text={person.externalId} name="the external id" />,
          Name: nameOf(person),
          Email: person.email ?? (wanted.hasEmail && 'kept, not shown'),
          ...(person.kind === 'client' && { 'Providers, the primary first': providers(wanted.providers) }),
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
          <Link href={personAddress({ kind: 'provider', externalId })}>{externalId}</Link>
          {!mirrored && ' (not on the platform yet)'}
        </li>
      ))}
    </ul>
  );
}

const CLAIMS = {
  held: 'only this person has it',
  free: 'not claimed yet',
  taken: 'another person of the EHR has it',
};

const ORIGINS = {
  created: 'made by this service',
  linked: 'found by its email',
  event: 'named by an event',
  resolved: 'linked by hand',
};

/** What is known of the platform; what is seldom so is left out where it is not. */
export function Known({ person, trace: { known } }: { person: Person; trace: Trace }) {
  const { platformUserId, unsettledCreate, checkedAbsentAt, appliedProviders, emailClaim, failures } = known;
  const { notPushable } = person.sync;
  return (
    <Section card title="Known of the platform">
      <Facts
        facts={{
          'User there': platformUserId && <Copyable text={platformUserId} name="the platform user id" />,
          'How it was found': platformUserId && person.origin && ORIGINS[person.origin],
          'Email here': emailClaim && CLAIMS[emailClaim],
          'Email last said to be unknown there': <Moment at={checkedAbsentAt} />,
          ...(person.kind === 'client' && { 'Users of its providers there': appliedProviders?.join(', ') }),
          ...(unsettledCreate && {
            'A create without an answer is looked up': <Moment at={unsettledCreate.lookUpAt} exact />,
          }),
          ...(failures > 0 && { 'Failures in a row': number(failures) }),
          ...(notPushable.length > 0 && { 'Differs there, and can not be changed by a call': named(notPushable) }),
          ...(person.inviteUrl && { Invitation: <Copyable text={person.inviteUrl} name="the invitation" /> }),
        }}
      />
    </Section>
  );
}

const FIELDS: Record<string, string> = { email: 'email', firstName: 'first name', lastName: 'last name' };

const named = (fields: readonly string[]) => fields.map((field) => FIELDS[field] ?? field).join(', ');
