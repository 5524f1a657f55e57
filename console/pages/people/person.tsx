import { Link } from 'wouter';
import type { Schemas } from '../../api/client.js';
import type { Column } from '../../parts/layout.js';
import { StateOf } from '../../parts/state.js';
import { Moment } from '../../parts/values.js';

export const KINDS = ['client', 'provider'] as const;
export type Kind = (typeof KINDS)[number];

export interface PersonKey {
  kind: Kind;
  externalId: string;
}

/** A unique key of a person in a list. */
export const keyOf = ({ kind, externalId }: PersonKey): string => `${kind} ${externalId}`;

/** The page of a person, below /console. */
export const personAddress = ({ kind, externalId }: PersonKey): string =>
  `/people/${kind}/${encodeURIComponent(externalId)}`;

/** The person of a URL. @param pathname with encoded characters, as in the browser, because an id may contain any */
export function personOf(pathname: string): PersonKey | undefined {
  const [kindName, encoded] = pathname.split('/people/')[1]?.split('/') ?? [];
  const kind = KINDS.find((known) => known === kindName);
  if (!kind || !encoded) return undefined;
  try {
    return { kind, externalId: decodeURIComponent(encoded) };
  } catch {
    return undefined;
  }
}

export type Person = Schemas['PersonResponse'];

/** The full name; empty once the deletion is requested, or if it cannot be decrypted. */
export const nameOf = ({ firstName, lastName }: Pick<Person, 'firstName' | 'lastName'>): string =>
  [firstName, lastName].filter(Boolean).join(' ');

/** Why a person is not settled, in our words and the platform's. */
export const whyOf = (error: Person['sync']['error']): string | undefined =>
  error?.platformMessage ? `${error.message} The platform said: ${error.platformMessage}` : error?.message;

/** The columns of a list of people. */
export const COLUMNS: readonly Column<Person>[] = [
  ['External id', (person) => <Link href={personAddress(person)}>{person.externalId}</Link>],
  ['Name', nameOf],
  ['Kind', ({ kind }) => kind],
  ['State', ({ sync }) => <StateOf of="personState" state={sync.state} />],
  ['Reason', ({ sync }) => whyOf(sync.error), 'text'],
  ['Changed', ({ sync }) => <Moment at={sync.updatedAt} />],
];
