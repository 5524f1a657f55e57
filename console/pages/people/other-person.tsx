import { Link } from 'wouter';
import { api } from '../../api/client.js';
import { Facts, Section } from '../../parts/layout.js';
import { Read } from '../../parts/read.js';
import { StateOf } from '../../parts/state.js';
import { Moment } from '../../parts/values.js';
import { keyOf, nameOf, type Person, personAddress } from './person.js';

/** The other people with the email of a person, in the EHR or only on the platform, to be compared with it. */
export function OthersWithEmail({ person }: { person: Person }) {
  const { email } = person;
  if (email === null) return null;
  return (
    <Read name={['people', 'same-email', email]} call={() => api.POST('/v1/people/search', { body: { email } })}>
      {({ items }) =>
        items
          .filter((other) => keyOf(other) !== keyOf(person))
          .map((other) => <Other key={keyOf(other)} person={other} isFormer={other.email !== email} />)
      }
    </Read>
  );
}

/** @param isFormer true if the EHR has given the person another email since its account was created */
function Other({ person, isFormer }: { person: Person; isFormer: boolean }) {
  const { kind, externalId, email, providers, platformUserId, sync } = person;
  return (
    <Section card title={isFormer ? 'Person whose account has this email' : 'Other person with this email'}>
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
