import type { Page } from '../../http/request/page.js';
import type { FhirElement } from '../../sessions/read/notes-fhir.js';
import { CURSOR, type NoteSearch } from './note-search.js';

/**
 * Makes the Bundle of a page (FHIR R4 §3.1.1.1). `self` has the parameters that were honoured. There is no `total`, because
 * counting would read all matching sessions.
 *
 * @param base absolute URL of the FHIR interface
 */
export function searchset(
  base: string,
  { parameters, cursor }: NoteSearch,
  { items, nextCursor }: Page<FhirElement>,
): FhirElement {
  const link = (relation: string, from: string | null | undefined) => {
    const query = new URLSearchParams([...parameters, ...(from ? [[CURSOR, from]] : [])] as [string, string][]);
    return { relation, url: `${base}/DocumentReference${query.size > 0 ? `?${query}` : ''}` };
  };
  return {
    resourceType: 'Bundle',
    type: 'searchset',
    link: [link('self', cursor), ...(nextCursor === null ? [] : [link('next', nextCursor)])],
    // FHIR forbids empty arrays.
    ...(items.length > 0 && {
      entry: items.map((resource) => ({
        fullUrl: `${base}/DocumentReference/${resource.id as string}`,
        resource,
        search: { mode: 'match' },
      })),
    }),
  };
}
