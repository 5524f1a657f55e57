import type { Bundle, DocumentReference } from 'fhir/r4';
import type { Page } from '../../http/request/page.js';
import { CURSOR, type NoteSearch, namesPerson } from './note-search.js';

/**
 * Makes the Bundle of a page (FHIR R4 §3.1.1.1). `self` has the parameters that were honoured. `next` names no client,
 * because clients send it as a URL also after a search by POST; its cursor does. There is no `total`, because counting
 * would read all matching sessions.
 *
 * @param base absolute URL of the FHIR interface
 */
export function searchset(
  base: string,
  { parameters, cursor }: NoteSearch,
  { items, nextCursor }: Page<DocumentReference>,
): Bundle<DocumentReference> {
  const url = `${base}/DocumentReference`;
  const link = (relation: string, given: typeof parameters, from: string | null | undefined) => {
    const query = new URLSearchParams([...given, ...(from ? [[CURSOR, from]] : [])] as [string, string][]);
    return { relation, url: query.size > 0 ? `${url}?${query}` : url };
  };
  const others = parameters.filter((parameter) => !namesPerson(parameter));
  return {
    resourceType: 'Bundle',
    type: 'searchset',
    link: [link('self', parameters, cursor), ...(nextCursor === null ? [] : [link('next', others, nextCursor)])],
    // FHIR forbids empty arrays.
    ...(items.length > 0 && {
      entry: items.map((resource) => ({ fullUrl: `${url}/${resource.id}`, resource, search: { mode: 'match' } })),
    }),
  };
}
