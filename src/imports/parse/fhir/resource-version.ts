import type { Version } from '../row/import-row.js';
import type { JsonObject } from '../text/json-object.js';
import { dateIn, objectIn, textIn } from './fhir-values.js';

/**
 * Reads the version of a resource from its meta, or from its entry. A deletion has only an entry: without the number in
 * its etag, it would count as older than a resource of the same second.
 */
export function versionOf(resource: unknown, entry: JsonObject, place: number): Version {
  const { lastUpdated, versionId } = objectIn(objectIn(resource).meta);
  const { lastModified, etag } = objectIn(entry.response);
  const at = dateIn(lastUpdated) ?? dateIn(lastModified);
  const no = numberIn(versionId) ?? numberIn(etag);
  return { ...(at && { at }), ...(no !== undefined && { no }), place };
}

/** Reads `3`, or an etag such as `W/"3"`. */
function numberIn(value: unknown): number | undefined {
  const [, digits] = /^(?:W\/)?"?(\d{1,15})"?$/.exec(textIn(value) ?? '') ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** Compares two versions of one resource: by time, then by number, then by place. An unknown one is older. */
export function isNewer(a: Version, b: Version): boolean {
  const time = ({ at }: Version) => at?.getTime() ?? Number.NEGATIVE_INFINITY;
  if (time(a) !== time(b)) return time(a) > time(b);
  const [noA, noB] = [a.no ?? -1, b.no ?? -1];
  return noA === noB ? a.place > b.place : noA > noB;
}
