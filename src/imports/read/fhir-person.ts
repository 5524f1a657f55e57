import type { PersonKind } from '../../people/person.js';
import { type JsonObject, objectsIn, textIn } from './json-object.js';
import type { PersonCandidate } from './validate-person.js';

/** HumanName.use, best first; a name without a use stands behind `usual`. */
const NAME_USES = ['official', 'usual', undefined, 'temp', 'nickname', 'anonymous', 'old', 'maiden'];

/** ContactPoint.use, best first: a provider is reached at work, a client at home. */
const EMAIL_USES: Record<PersonKind, (string | undefined)[]> = {
  provider: ['work', undefined, 'home', 'mobile', 'temp'],
  client: ['home', undefined, 'mobile', 'work', 'temp'],
};

function place(use: unknown, order: (string | undefined)[]): number {
  const index = order.indexOf(textIn(use));
  return index < 0 ? order.length : index;
}

/** First and last name out of a written name: `Osei, Ada` or `Dr. Ada Osei` with its prefix known. */
function splitText(text: string, prefixes: (string | undefined)[]): { first?: string; last?: string } {
  const comma = text.indexOf(',');
  if (comma >= 0) return { last: textIn(text.slice(0, comma)), first: textIn(text.slice(comma + 1))?.split(/\s+/)[0] };
  const words = text.split(/\s+/).filter((word) => !prefixes.includes(word));
  return words.length > 1 ? { first: words[0], last: words.at(-1) } : { last: words[0] };
}

function bestName(resource: JsonObject): { firstName?: string; lastName?: string } {
  const [name] = objectsIn(resource.name).sort((a, b) => place(a.use, NAME_USES) - place(b.use, NAME_USES));
  if (!name) return {};
  const given = Array.isArray(name.given) ? name.given.map(textIn).find((part) => part !== undefined) : undefined;
  const family = textIn(name.family);
  const text = textIn(name.text);
  const written = text && !(given && family) ? splitText(text, [name.prefix].flat().map(textIn)) : {};
  return { firstName: given ?? written.first, lastName: family ?? written.last };
}

function bestEmail(resource: JsonObject, kind: PersonKind): string | undefined {
  const rank = (point: JsonObject) => (typeof point.rank === 'number' ? point.rank : Number.POSITIVE_INFINITY);
  const order = EMAIL_USES[kind];
  const [best] = objectsIn(resource.telecom)
    .filter((point) => point.system === 'email' && point.use !== 'old' && textIn(point.value))
    .sort((a, b) => (rank(a) === rank(b) ? place(a.use, order) - place(b.use, order) : rank(a) - rank(b)));
  return textIn(best?.value);
}

/** The value of the first of these identifier systems that a resource has; an official one before others, none old. */
function identifierOf(resource: JsonObject, systems: readonly string[]): string | undefined {
  const identifiers = objectsIn(resource.identifier).filter(({ use }) => use !== 'old');
  for (const wanted of systems) {
    const values = identifiers.filter(({ system, value }) => textIn(system) === wanted && textIn(value));
    const best = values.find(({ use }) => use === 'official') ?? values[0];
    if (best) return textIn(best.value);
  }
  return undefined;
}

/**
 * A FHIR R4 Practitioner or Patient as a person. Inactive and deceased people are people: their records are still
 * theirs, and leaving them out would make a snapshot delete them.
 * @param idSystems identifier systems that give the external id; none: the resource's id
 */
export function fhirPerson(kind: PersonKind, resource: JsonObject, idSystems: readonly string[]): PersonCandidate {
  const externalId = idSystems.length > 0 ? identifierOf(resource, idSystems) : textIn(resource.id);
  return { kind, externalId, email: bestEmail(resource, kind), ...bestName(resource) };
}
