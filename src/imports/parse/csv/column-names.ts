import type { PersonKind } from '../../../people/rules/person.js';
import type { Field, FileKind, FileMapping } from '../row/import-row.js';
import { STATUS_NAMES } from './gone.js';

/** Maximum characters of a column name that can be a known one. */
const NAME_MAX = 100;

/** Letters and digits in lower case: `E-Mail Address *` and `email_address` are the same name. */
export function plainName(name: string): string {
  if (name.length > NAME_MAX) return '';
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');
}

const EMAILS = 'email emailaddress mail primaryemail contactemail'.split(' ');
const PRIVATE_EMAILS = 'homeemail personalemail privateemail'.split(' ');

/** Names of email columns by preference: the platform writes to clients at home, and to providers at work. */
export const EMAIL_PREFERENCE: Record<PersonKind, readonly string[]> = {
  client: [...PRIVATE_EMAILS, ...EMAILS, 'workemail'],
  provider: ['workemail', ...EMAILS, ...PRIVATE_EMAILS],
};

/** Known names by field. Of two columns that may be a name, the one that comes earlier here is read. */
const NAMES = {
  kind: ['kind'],
  externalId:
    'externalid externaluserid partneruserid mrn medicalrecordnumber medicalrecordno recordnumber chartnumber chartid ehrid emrid uuid uid id'.split(
      ' ',
    ),
  email: EMAIL_PREFERENCE.client,
  firstName: 'firstname givenname forename firstnames givennames legalfirstname first given fname'.split(' '),
  lastName: 'lastname surname familyname legallastname last family lname'.split(' '),
  providers: ['providers'],
  platformUserId: ['platformuserid'],
  status: STATUS_NAMES,
} satisfies Record<Field | 'status', readonly string[]>;

export interface KnownName {
  field: Field | 'status';
  /** Its plain name without the subject. */
  name: string;
  /** The smallest is preferred. */
  rank: number;
}

const KNOWN = new Map<string, KnownName>(
  (Object.keys(NAMES) as (keyof typeof NAMES)[]).flatMap((field) =>
    NAMES[field].map((name, rank) => [name, { field, name, rank }] as const),
  ),
);

/** Words that may precede a name (`Patient ID`, `Clinician e-mail`). */
const CLIENT_WORDS = ['patient', 'client', 'member', 'person', 'user'];
const PROVIDER_WORDS = 'provider therapist clinician practitioner doctor staff employee person user'.split(' ');

/** Names that mean an id only after such a word: `Patient number`. */
const ID_AFTER_WORD = ['number', 'no', 'identifier', 'code', 'key'];

const PROVIDER_COLUMN =
  /^(?:primary|assigned|treating|main)?(?:(?:provider|therapist|clinician|practitioner|counsell?or|psychologist|psychiatrist|physician|doctor)s?(?:externalids?|ids?)?|generalpractitioners?|careteam)$/;

/**
 * The meaning of a column name in a file; undefined if it is unknown.
 *
 * @param name plain
 */
export function knownName(name: string, kind: FileKind): KnownName | undefined {
  const direct = KNOWN.get(name);
  if (direct?.field === 'kind') return kind === 'both' ? direct : undefined;
  if (direct && !(direct.field === 'providers' && kind === 'providers')) return direct;
  if (kind !== 'providers' && PROVIDER_COLUMN.test(name)) {
    return { field: 'providers', name, rank: /ids?$/.test(name) ? 1 : 2 };
  }
  const word = (kind === 'providers' ? PROVIDER_WORDS : CLIENT_WORDS).find((each) => name.startsWith(each));
  if (!word) return undefined;
  const rest = name.slice(word.length);
  const known = KNOWN.get(rest);
  // The documented name, which has rank 0, has no such word.
  const isId = known?.field === 'externalId' || ID_AFTER_WORD.includes(rest);
  if (isId) return { field: 'externalId', name: rest, rank: 1 };
  return known && !['kind', 'providers', 'platformUserId'].includes(known.field) ? known : undefined;
}

/** Words in names of columns that only files of one kind have. */
const OF_CLIENTS = /^(?:patient|client|member)|(?:birth|dob)|^mrn$|medicalrecord/;
const OF_PROVIDERS = /^npi$|nationalprovideridentifier|licen[cs]e|credential|taxonomy/;

/** The kinds of people that the columns of a file suggest: none, one or, if they are ambiguous, two. */
export function kindsOfColumns(header: readonly string[]): FileKind[] {
  const names = header.map(plainName);
  const has = (field: Field, kind: FileKind) => names.some((name) => knownName(name, kind)?.field === field);
  if (has('kind', 'both') && has('externalId', 'both')) return ['both'];
  // `Therapist ID` is a client's provider next to an id of the client, otherwise it is the id itself.
  const hasOwnId = has('externalId', 'clients');
  const is = {
    clients: names.some((name) => OF_CLIENTS.test(name)) || (hasOwnId && has('providers', 'clients')),
    providers: names.some((name) => OF_PROVIDERS.test(name)) || (!hasOwnId && has('externalId', 'providers')),
  };
  return (['clients', 'providers'] as const).filter((kind) => is[kind]);
}

const LIKE_PROVIDERS =
  /(?<!\bap|\bim)prov(?!inc)|therapist|clinician|practitioner|counsel|psycholog|psychiatr|physician|doctor|pcp/;

/** The ignored columns that may name a client's providers, for the hint of `no-provider`. */
export function ignoredProviderColumns({ columns }: FileMapping): string[] {
  return columns
    .filter(({ name, field }) => field === null && LIKE_PROVIDERS.test(name.toLowerCase()))
    .map(({ name }) => name);
}
