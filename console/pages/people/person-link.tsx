import { memo } from 'react';
import { Link } from 'wouter';
import { useScopes } from '../../api/session.js';
import { Copyable } from '../../parts/values.js';
import { useName } from './names.js';
import { keyOf, type PersonKey, personAddress } from './person.js';

interface Shown {
  person: PersonKey;
  /** Shows the id next to the name. Defaults to false. */
  withId?: boolean;
}

/** A person by name, or by id if the name is unknown or the caller may not read people. Links to the person's page. */
export const PersonLink = memo(
  PersonLinkShown,
  // Otherwise each further page of a list renders all links again.
  (before, after) => keyOf(before.person) === keyOf(after.person) && before.withId === after.withId,
);

function PersonLinkShown({ person, withId = false }: Shown) {
  const mayRead = useScopes().includes('people:read');
  const name = useName(person);
  const { kind, externalId } = person;
  const id = withId && <Copyable text={externalId} name={`the id of the ${kind}`} />;
  if (!mayRead) return id || externalId;
  return (
    <>
      <Link href={personAddress(person)} title={`${kind} ${externalId}`}>
        {name || externalId}
      </Link>
      {name && id && ' '}
      {name && id && <span className="help">{id}</span>}
    </>
  );
}

/** People by name, one below the other. */
export function PersonLinks({ people, withId = false }: { people: readonly PersonKey[]; withId?: boolean }) {
  if (people.length === 0) return null;
  return (
    <ul className="plain">
      {people.map((person) => (
        <li key={keyOf(person)}>
          <PersonLink person={person} withId={withId} />
        </li>
      ))}
    </ul>
  );
}
