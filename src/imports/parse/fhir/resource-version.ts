import type { Version } from '../row/import-row.js';
import type { JsonObject } from '../text/json-object.js';
import { dateIn, objectIn, textIn } from './fhir-values.js';

/** Reads the version of a resource, or of its deletion, from its meta or from its entry. */
export function versionOf(resource: unknown, entry: JsonObject, place: number): Version {
  const { lastUpdated, versionId } = objectIn(objectIn(resource).meta);
  const at = dateIn(lastUpdated) ?? dateIn(objectIn(entry.response).lastModified);
  const number = /^\d{1,15}$/.exec(textIn(versionId) ?? '')?.[0];
  return { ...(at && { at }), ...(number && { no: Number(number) }), place };
}

/** Compares two versions of one resource: by time, then by number, then by place. An unknown one is older. */
export function isNewer(a: Version, b: Version): boolean {
  const time = ({ at }: Version) => at?.getTime() ?? Number.NEGATIVE_INFINITY;
  if (time(a) !== time(b)) return time(a) > time(b);
  const [noA, noB] = [a.no ?? -1, b.no ?? -1];
  return noA === noB ? a.place > b.place : noA > noB;
}
