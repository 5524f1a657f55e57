import type { PersonKind } from '../../../people/model/person.js';
import { isEmailAddress } from '../../../people/model/person-field-rules.js';
import { usableEmail } from '../row/email-text.js';
import type { JsonObject } from '../text/json-object.js';
import { hasEnded, isCurrent, objectsIn, textIn } from './fhir-values.js';

/** The texts of a Practitioner or Patient, before they are validated. */
export interface FhirPerson {
  externalId?: string;
  email?: string;
  firstName?: string;
  lastName?: string;
  /** The name, if the resource has it only as one text. */
  nameText?: string;
}

/** HumanName.use, best first. */
const NAME_USES = ['official', 'usual', undefined, 'temp', 'nickname', 'anonymous'];

/** HumanName.use of names that count only if there is no other: the person may have dropped them. */
const FORMER_USES = ['old', 'maiden'];

/** ContactPoint.use, best first. */
const EMAIL_USES = {
  provider: ['work', undefined, 'home', 'mobile', 'temp'],
  client: ['home', undefined, 'mobile', 'work', 'temp'],
};

/** Marks an address that only other Direct mailboxes can write to. */
const DIRECT_ADDRESS = 'http://hl7.org/fhir/us/core/StructureDefinition/us-core-direct';

/** Items in ascending order of the first rank that differs. */
function ranked(items: JsonObject[], ranksOf: (item: JsonObject) => number[]): JsonObject[] {
  const pairs = items.map((item) => ({ item, ranks: ranksOf(item) }));
  pairs.sort((a, b) => a.ranks.map((rank, at) => rank - (b.ranks[at] ?? 0)).find((difference) => difference) ?? 0);
  return pairs.map(({ item }) => item);
}

/** The index of a use in a list, or the list's length. */
function rankOfUse(use: unknown, order: readonly (string | undefined)[]): number {
  const index = order.indexOf(textIn(use));
  return index < 0 ? order.length : index;
}

function readName({ family, given, text }: JsonObject): FhirPerson {
  const [firstName, lastName] = [given, family].map((part) => [part].flat().map(textIn).find(Boolean));
  const nameText = firstName || lastName ? undefined : textIn(text);
  return { ...(firstName && { firstName }), ...(lastName && { lastName }), ...(nameText && { nameText }) };
}

/** The best complete name, otherwise the best name. Former names count only if there is no current one. */
function nameOf(resource: JsonObject, now: Date): FhirPerson {
  const names = ranked(objectsIn(resource.name), ({ use }) => [rankOfUse(use, NAME_USES)]);
  const isFormer = ({ use, period }: JsonObject) => FORMER_USES.includes(textIn(use) ?? '') || !isCurrent(period, now);
  const read = (some: JsonObject[]) => some.map(readName).filter((name) => Object.keys(name).length > 0);
  const current = read(names.filter((name) => !isFormer(name)));
  const candidates = current.length > 0 ? current : read(names);
  return candidates.find(({ firstName, lastName }) => firstName && lastName) ?? candidates[0] ?? {};
}

/**
 * The best email address, or a text that is not an address only if there is none. A Direct address counts last, and only
 * for providers, because they need an email; some exports mark every address as Direct.
 */
function emailOf(resource: JsonObject, kind: PersonKind, now: Date): string | undefined {
  const emails = objectsIn(resource.telecom).filter(({ system, use, period }) => {
    return system === 'email' && use !== 'old' && !hasEnded(period, now);
  });
  const wanted = kind === 'provider' ? emails : emails.filter((point) => !isDirect(point));
  const texts = ranked(wanted, (point) => [
    isDirect(point) ? 1 : 0,
    isCurrent(point.period, now) ? 0 : 1,
    typeof point.rank === 'number' ? point.rank : Number.MAX_VALUE,
    rankOfUse(point.use, EMAIL_USES[kind]),
  ]).map(({ value }) => usableEmail(textIn(value) ?? ''));
  return texts.find(isEmailAddress) ?? texts.find((text) => text !== '');
}

function isDirect({ extension }: JsonObject): boolean {
  return objectsIn(extension).some(({ url, valueBoolean }) => url === DIRECT_ADDRESS && valueBoolean === true);
}

/** The value of the first of these systems that the resource has: current before ended, then official ones. */
function identifierOf(resource: JsonObject, systems: readonly string[], now: Date): string | undefined {
  const usable = objectsIn(resource.identifier).filter(({ system, use, value }) => {
    return systems.includes(textIn(system) ?? '') && use !== 'old' && textIn(value);
  });
  const [best] = ranked(usable, ({ system, period, use }) => [
    systems.indexOf(textIn(system) ?? ''),
    isCurrent(period, now) ? 0 : 1,
    use === 'official' ? 0 : 1,
  ]);
  return textIn(best?.value);
}

/** @param idSystems identifier systems that give the external id; none: the id of the resource */
export function fhirPerson(
  kind: PersonKind,
  resource: JsonObject,
  { idSystems = [], now }: { idSystems?: readonly string[]; now: Date },
): FhirPerson {
  const externalId = idSystems.length > 0 ? identifierOf(resource, idSystems, now) : textIn(resource.id);
  return { externalId, email: emailOf(resource, kind, now), ...nameOf(resource, now) };
}
