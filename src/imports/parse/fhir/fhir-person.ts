import type { PersonKind } from '../../../people/model/person.js';
import type { PersonCandidate } from '../row/validate-person.js';
import { isJsonObject, type JsonObject } from '../text/json-records.js';

/** Items of a list that are looked at: no person has so many names, identifiers or providers. */
const ITEMS_MAX = 1_000;

/** The objects of a list, as far as it is looked at; nothing where there is no list. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.slice(0, ITEMS_MAX).filter(isJsonObject) : [];
}

/** A string without blanks at its ends; undefined when it is empty or no string. */
export function textIn(value: unknown): string | undefined {
  return (typeof value === 'string' && value.trim()) || undefined;
}

/** FHIR dateTime, also 2019 or 2019-03, as far as its year has four digits and is one of the common era. */
const DATE_TIME = /^(?!0000)\d{4}(?:-(\d\d)(?:-(\d\d)(T.{1,40})?)?)?$/;

/** When a moment begins, and where it is a year, month or day, when that is over. */
function moment(value: unknown): { begins: Date; over: Date } | undefined {
  const [text, month, day, time] = DATE_TIME.exec(textIn(value) ?? '') ?? [];
  const begins = new Date(text ?? Number.NaN);
  if (Number.isNaN(begins.getTime())) return undefined;
  if (time !== undefined) return { begins, over: begins };
  const over = new Date(begins);
  if (day !== undefined) over.setUTCDate(over.getUTCDate() + 1);
  else if (month !== undefined) over.setUTCMonth(over.getUTCMonth() + 1);
  else over.setUTCFullYear(over.getUTCFullYear() + 1);
  return { begins, over };
}

/** When the first of these periods that says so begins, or else ended. */
export function sinceOf(...periods: unknown[]): Date | undefined {
  const dates = periods.filter(isJsonObject).map(({ start, end }) => (moment(start) ?? moment(end))?.begins);
  return dates.find((date) => date !== undefined);
}

/** When the first of these periods to end is over; undefined while none says so. */
export function endOf(...periods: unknown[]): Date | undefined {
  const ends = periods.filter(isJsonObject).flatMap(({ end }) => moment(end)?.over ?? []);
  return ends.sort((a, b) => a.getTime() - b.getTime())[0];
}

/** Whether something holds now; what says nothing does. */
function isCurrent(period: unknown, now: Date): boolean {
  return !hasEnded(period, now) && !(isJsonObject(period) && (moment(period.start)?.begins ?? now) > now);
}

function hasEnded(period: unknown, now: Date): boolean {
  return (endOf(period) ?? Number.POSITIVE_INFINITY) <= now;
}

/** HumanName.use, best first; a name without a use stands behind `usual`. */
const NAME_USES = ['official', 'usual', undefined, 'temp', 'nickname', 'anonymous', 'old', 'maiden'];

/** ContactPoint.use, best first: a provider is reached at work, a client at home. */
const EMAIL_USES = {
  provider: ['work', undefined, 'home', 'mobile', 'temp'],
  client: ['home', undefined, 'mobile', 'work', 'temp'],
};

/** Place of a use in an order; one that it does not know comes last. */
function place(use: unknown, order: readonly (string | undefined)[]): number {
  const index = order.indexOf(textIn(use));
  return index < 0 ? order.length : index;
}

/** The first of those that hold now, else of all, by its ranks one after the other. */
function best(items: JsonObject[], now: Date, ranksOf: (item: JsonObject) => number[]): JsonObject | undefined {
  if (items.length < 2) return items[0];
  const ranked = items.map((item) => ({ item, ranks: [isCurrent(item.period, now) ? 0 : 1, ...ranksOf(item)] }));
  ranked.sort((a, b) => a.ranks.map((rank, at) => rank - (b.ranks[at] ?? 0)).find((more) => more !== 0) ?? 0);
  return ranked[0]?.item;
}

/** Titles before a written name, and what stands behind it, without their dots. */
const TITLES = 'dr mr mrs ms miss mx prof professor rev sir dame fr sr br'.split(' ');
const SUFFIXES = [
  'jr sr ii iii iv md do phd psyd edd dds dmd dnp rn np aprn pmhnp pa pac lcsw lmft lmhc lpc lpcc lcpc licsw lmsw msw',
  'mft ma ms med ba bs bcba mph mba facp esq ot otr slp pt dpt',
].flatMap((some) => some.split(' '));

/** Characters of a written name that are looked at. */
const TEXT_MAX = 500;

function bare(word: string): string {
  return word.replaceAll('.', '').toLowerCase();
}

/** `MD`, `Ph.D.`: what is no name, or need not be one. */
function isSuffix(word: string): boolean {
  return SUFFIXES.includes(bare(word));
}

/** The words of a name without titles and suffixes. */
function nameWords(text: string, known: ReadonlySet<string>): string[] {
  const words = text.split(/\s+/).filter((word) => word !== '' && !known.has(word));
  while (TITLES.includes(bare(words[0] ?? ''))) words.shift();
  while (words.length > 1 && isSuffix(words.at(-1) ?? '')) words.pop();
  return words;
}

/**
 * First and last name out of a written name, where only one reading is possible: two words (`Dr. Ada Osei`), or one on
 * each side of a comma (`Osei, Ada`). With more words a middle name can't be told from a second last name.
 */
function splitText(text: string, known: ReadonlySet<string>): { firstName?: string; lastName?: string } | undefined {
  const parts = text.split(',').map((part) => nameWords(part, known));
  const names = parts.filter((words, at) => at === 0 || !words.every(isSuffix));
  const [before = [], behind] = names;
  if (!behind) return before.length === 2 ? { firstName: before[0], lastName: before[1] } : undefined;
  const isPlain = names.length === 2 && parts.length === 2 && before.length === 1 && behind.length === 1;
  return isPlain ? { firstName: behind[0], lastName: before[0] } : undefined;
}

/** What a HumanName holds; `unsplit`: it has text only, of which first and last name can't be told apart safely. */
interface FhirName {
  firstName?: string;
  lastName?: string;
  unsplit?: string;
}

/** The name that a person has now, the best by its use. */
function fhirName(resource: JsonObject, now: Date): FhirName {
  const name = best(objectsIn(resource.name), now, ({ use }) => [place(use, NAME_USES)]);
  if (!name) return {};
  const firstName = [name.given].flat().map(textIn).find(Boolean);
  const lastName = textIn(name.family);
  const text = textIn(name.text)?.slice(0, TEXT_MAX);
  if (!text || (firstName && lastName)) return { firstName, lastName };
  const known = new Set([name.prefix, name.suffix].flat().flatMap((word) => textIn(word)?.split(/\s+/) ?? []));
  if (lastName) {
    const before = text.endsWith(lastName) ? nameWords(text.slice(0, -lastName.length), known) : [];
    return { firstName: before[0], lastName };
  }
  const written = splitText(text, known);
  if (firstName) return { firstName, lastName: written?.firstName === firstName ? written.lastName : undefined };
  return written ?? { unsplit: text };
}

/** The best email that is in use: an old or ended address may be another person's by now. */
function bestEmail(resource: JsonObject, kind: PersonKind, now: Date): string | undefined {
  const emails = objectsIn(resource.telecom).filter(
    ({ system, use, value, period }) => system === 'email' && use !== 'old' && textIn(value) && !hasEnded(period, now),
  );
  const order = ({ rank, use }: JsonObject) => [
    typeof rank === 'number' ? rank : Number.MAX_VALUE,
    place(use, EMAIL_USES[kind]),
  ];
  return textIn(best(emails, now, order)?.value);
}

/** The value of the first of these systems that a resource has; a current one before others, then an official one. */
function identifierOf(resource: JsonObject, systems: readonly string[], now: Date): string | undefined {
  const identifiers = objectsIn(resource.identifier).filter(({ use, value }) => use !== 'old' && textIn(value));
  const found = systems.map((wanted) => {
    const fitting = identifiers.filter(({ system }) => textIn(system) === wanted);
    return textIn(best(fitting, now, ({ use }) => [Number(use !== 'official')])?.value);
  });
  return found.find((value) => value !== undefined);
}

/**
 * A FHIR R4 Practitioner or Patient as a person, and its name's text where that is all there is of it. Inactive and
 * deceased people are people: their records are still theirs, and leaving them out would make a snapshot delete them.
 * @param idSystems identifier systems that give the external id; none: the resource's id
 * @param now of names, emails and identifiers, those that hold now count first
 */
export function fhirPerson(
  kind: PersonKind,
  resource: JsonObject,
  idSystems: readonly string[],
  now: Date,
): PersonCandidate & FhirName {
  const externalId = idSystems.length > 0 ? identifierOf(resource, idSystems, now) : textIn(resource.id);
  return { kind, externalId, email: bestEmail(resource, kind, now), ...fhirName(resource, now) };
}
