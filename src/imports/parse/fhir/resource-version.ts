import type { Version } from '../row/import-row.js';
import type { JsonObject } from '../text/json-records.js';
import { momentIn, objectIn, textIn } from './fhir-values.js';

/** Reads the version of a resource, or of its deletion, from its meta and from its entry. */
export function versionOf(resource: JsonObject, entry: JsonObject, place: number): Version {
  const { lastUpdated, versionId } = objectIn(resource.meta);
  const { lastModified, etag } = objectIn(entry.response);
  const at = (momentIn(lastUpdated) ?? momentIn(lastModified))?.begins;
  const no = integerIn(textIn(versionId)) ?? integerIn(/^(?:W\/)?"([^"]{1,40})"$/.exec(textIn(etag) ?? '')?.[1]);
  return { ...(at && { at }), ...(no !== undefined && { no }), place };
}

function integerIn(text: string | undefined): number | undefined {
  return text && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Compares two versions of one resource: by time, then by number, then by place. An unknown one is older. */
export function isNewer(a: Version, b: Version): boolean {
  const [atA, atB] = [a, b].map(({ at }) => at?.getTime() ?? Number.NEGATIVE_INFINITY) as [number, number];
  if (atA !== atB) return atA > atB;
  const [noA, noB] = [a.no ?? -1, b.no ?? -1];
  return noA === noB ? a.place > b.place : noA > noB;
}
