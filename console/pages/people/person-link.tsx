import { Link } from 'wouter';
import { useScopes } from '../../api/session.js';
import { Copyable } from '../../parts/values.js';
import { useNames } from './names.js';
import { keyOf, type PersonKey, personAddress } from './person.js';

/** A person by name, or by id if the name is unknown or the caller may not read people. Links to the person's page. */
export function PersonLink({ person, withId = false }: { person: PersonKey; withId?: boolean }) {
  const mayRead = useScopes().includes('people:read');
  const [name] = useNames([person]);
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
