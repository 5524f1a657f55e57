import type { PersonKind } from '../../../people/model/person.js';
import { type JsonObject, objectsIn, textIn } from '../row/json-object.js';
import type { PersonCandidate } from '../row/validate-person.js';
import { hasEnded, isCurrent } from './fhir-period.js';

/** HumanName.use, best first; a name without a use stands behind `usual`. */
const NAME_USES = ['official', 'usual', undefined, 'temp', 'nickname', 'anonymous', 'old', 'maiden'];

/** Titles before a written name, and what stands behind it, without their dots. */
const TITLES = ['dr', 'mr', 'mrs', 'ms', 'miss', 'mx', 'prof', 'professor', 'rev', 'sir', 'dame', 'fr', 'sr', 'br'];
const SUFFIXES = [
  ...[
    'jr',
    'sr',
    'ii',
    'iii',
    'iv',
    'md',
    'do',
    'phd',
    'psyd',
    'edd',
    'dds',
    'dmd',
    'dnp',
    'rn',
    'np',
    'aprn',
    'pmhnp',
  ],
  ...['pa', 'pac', 'lcsw', 'lmft', 'lmhc', 'lpc', 'lpcc', 'lcpc', 'licsw', 'lmsw', 'msw', 'mft', 'ma', 'ms', 'med'],
  ...['ba', 'bs', 'bcba', 'mph', 'mba', 'facp', 'esq', 'ot', 'otr', 'slp', 'pt', 'dpt'],
];

/** Characters of a written name that are looked at. */
const TEXT_MAX = 500;

/** What a HumanName holds; `unsplit`: it has text only, of which first and last name can't be told apart safely. */
interface FhirName {
  firstName?: string;
  lastName?: string;
  unsplit?: string;
}

function bare(word: string): string {
  return word.replaceAll('.', '').toLowerCase();
}

/** The words of a name without titles and suffixes. */
function nameWords(text: string, known: ReadonlySet<string>): string[] {
  const words = text.split(/\s+/).filter((word) => word !== '' && !known.has(word));
  while (words.length > 0 && TITLES.includes(bare(words[0] ?? ''))) words.shift();
  while (words.length > 1 && isSuffix(words.at(-1) ?? '')) words.pop();
  return words;
}

/** `MD`, `Ph.D.`: what is no name, or need not be one. */
function isSuffix(word: string): boolean {
  return SUFFIXES.includes(bare(word));
}

/**
 * First and last name out of a written name, where only one reading is possible: two words (`Dr. Ada Osei`), or one on
 * each side of a comma (`Osei, Ada`). With more words a middle name can't be told from a second last name.
 */
function splitText(text: string, known: ReadonlySet<string>): { first: string; last: string } | undefined {
  const parts = text
    .slice(0, TEXT_MAX)
    .split(',')
    .map((part) => nameWords(part, known));
  const names = parts.filter((words, at) => at === 0 || !words.every(isSuffix));
  const [before = [], behind, more] = names;
  if (more) return undefined;
  if (!behind) return before.length === 2 ? { first: before[0] ?? '', last: before[1] ?? '' } : undefined;
  const isPlain = before.length === 1 && behind.length === 1 && names.length === parts.length;
  return isPlain ? { first: behind[0] ?? '', last: before[0] ?? '' } : undefined;
}

/** The name that a person has now, the best by its use. */
function fhirName(resource: JsonObject, now: Date): FhirName {
  const place = (name: JsonObject) => {
    const use = NAME_USES.indexOf(textIn(name.use));
    return (isCurrent(name.period, now) ? 0 : 100) + (use < 0 ? NAME_USES.length : use);
  };
  const [name] = objectsIn(resource.name).sort((a, b) => place(a) - place(b));
  if (!name) return {};
  const firstName = Array.isArray(name.given) ? name.given.map(textIn).find((part) => part !== undefined) : undefined;
  const lastName = textIn(name.family);
  const text = textIn(name.text);
  if (!text || (firstName && lastName)) return { firstName, lastName };
  const known = new Set([name.prefix, name.suffix].flat().flatMap((word) => textIn(word)?.split(/\s+/) ?? []));
  if (lastName) return { firstName: firstBefore(text, lastName, known), lastName };
  const written = splitText(text, known);
  if (firstName) return { firstName, lastName: written?.first === firstName ? written.last : undefined };
  return written ? { firstName: written.first, lastName: written.last } : { unsplit: text.slice(0, TEXT_MAX) };
}

/** The first word before the last name; undefined for a text that does not end with it. */
function firstBefore(text: string, lastName: string, known: ReadonlySet<string>): string | undefined {
  return text.endsWith(lastName) ? nameWords(text.slice(0, -lastName.length), known)[0] : undefined;
}

/** ContactPoint.use, best first: a provider is reached at work, a client at home. */
const EMAIL_USES: Record<PersonKind, (string | undefined)[]> = {
  provider: ['work', undefined, 'home', 'mobile', 'temp'],
  client: ['home', undefined, 'mobile', 'work', 'temp'],
};

function place(use: unknown, order: (string | undefined)[]): number {
  const index = order.indexOf(textIn(use));
  return index < 0 ? order.length : index;
}

/** The best email that is in use: an old or ended address may be another person's by now. */
function bestEmail(resource: JsonObject, kind: PersonKind, now: Date): string | undefined {
  const rank = (point: JsonObject) => (typeof point.rank === 'number' ? point.rank : Number.POSITIVE_INFINITY);
  const later = (point: JsonObject) => Number(!isCurrent(point.period, now));
  const order = EMAIL_USES[kind];
  const [best] = objectsIn(resource.telecom)
    .filter((point) => point.system === 'email' && point.use !== 'old' && textIn(point.value))
    .filter((point) => !hasEnded(point.period, now))
    .sort(
      (a, b) =>
        later(a) - later(b) || (rank(a) === rank(b) ? place(a.use, order) - place(b.use, order) : rank(a) - rank(b)),
    );
  return textIn(best?.value);
}

/** The value of the first of these systems that a resource has; a current one before others, then an official one. */
function identifierOf(resource: JsonObject, systems: readonly string[], now: Date): string | undefined {
  const identifiers = objectsIn(resource.identifier).filter(({ use }) => use !== 'old');
  const later = ({ period, use }: JsonObject) => (isCurrent(period, now) ? 0 : 2) + Number(use !== 'official');
  for (const wanted of systems) {
    const [best] = identifiers
      .filter(({ system, value }) => textIn(system) === wanted && textIn(value))
      .sort((a, b) => later(a) - later(b));
    if (best) return textIn(best.value);
  }
  return undefined;
}

/** A person as a resource says it, and its name's text where that is all there is. */
type FhirCandidate = PersonCandidate & Pick<FhirName, 'unsplit'>;

/**
 * A FHIR R4 Practitioner or Patient as a person. Inactive and deceased people are people: their records are still
 * theirs, and leaving them out would make a snapshot delete them.
 * @param idSystems identifier systems that give the external id; none: the resource's id
 * @param now of names, emails and identifiers, those that hold now count first
 */
export function fhirPerson(
  kind: PersonKind,
  resource: JsonObject,
  idSystems: readonly string[],
  now: Date,
): FhirCandidate {
  const externalId = idSystems.length > 0 ? identifierOf(resource, idSystems, now) : textIn(resource.id);
  return { kind, externalId, email: bestEmail(resource, kind, now), ...fhirName(resource, now) };
}

/** Whether a Patient's record lives on in another one (Patient.link), so that it is no second person. */
export function isReplaced(resource: JsonObject): boolean {
  return objectsIn(resource.link).some(({ type }) => type === 'replaced-by');
}
