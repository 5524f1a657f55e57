import { Link } from 'wouter';
import { api } from '../../api/client.js';
import { Facts, Section } from '../../parts/layout.js';
import { Read } from '../../parts/read.js';
import { StateOf } from '../../parts/state.js';
import { Moment } from '../../parts/values.js';
import { keyOf, nameOf, type Person, personAddress } from './person.js';

/** The other people of the EHR with the email of a person, to be compared with it. */
export function OthersWithEmail({ person }: { person: Person }) {
  const { email } = person;
  if (email === null) return null;
  return (
    <Read name={['people', 'same-email', email]} call={() => api.POST('/v1/people/search', { body: { email } })}>
      {({ items }) =>
        items
          .filter((other) => keyOf(other) !== keyOf(person))
          .map((other) => <Other key={keyOf(other)} person={other} />)
      }
    </Read>
  );
}

function Other({ person }: { person: Person }) {
  const { kind, externalId, email, providers, platformUserId, sync } = person;
  return (
    <Section card title="Other person with this email">
      <Facts
        facts={{
          Name: nameOf(person),
          'External id': <Link href={personAddress(person)}>{`${kind} ${externalId}`}</Link>,
          Email: email,
          ...(kind === 'client' && { 'Providers, primary first': providers?.join(', ') }),
          'Platform user': platformUserId,
          State: <StateOf of="personState" state={sync.state} />,
          Changed: <Moment at={sync.updatedAt} />,
        }}
      />
    </Section>
  );
}
