import type { PersonKind } from '../../../people/model/person.js';
import { type JsonObject, objectsIn, textIn } from '../row/json-object.js';
import type { PersonCandidate } from '../row/validate-person.js';
import { type FhirName, fhirName } from './fhir-name.js';
import { hasEnded, isCurrent } from './fhir-period.js';

/** ContactPoint.use, best first: a provider is reached at work, a client at home. */
const EMAIL_USES: Record<PersonKind, (string | undefined)[]> = {
  provider: ['work', undefined, 'home', 'mobile', 'temp'],
  client: ['home', undefined, 'mobile', 'work', 'temp'],
};

function place(use: unknown, order: (string | undefined)[]): number {
  const index = order.indexOf(textIn(use));
  return index < 0 ? order.length : index;
}

/** The best email that is in use: an old or ended address may be somebody else's by now. */
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
export type FhirCandidate = PersonCandidate & Pick<FhirName, 'unsplit'>;

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
