import { fhirFaults } from '../../harness/fhir-faults.js';
import type { Answer, CallOptions } from '../../harness/world/request.js';
import type { World } from '../../harness/world/world.js';
import type { Scope } from '../../src/access/identity/scope.js';

interface Reference {
  type?: string;
  display?: string;
  identifier?: { system?: string; value: string };
}

/** A DocumentReference, as far as the tests read it. */
export interface Note {
  resourceType: string;
  id: string;
  meta: { versionId: string; lastUpdated: string };
  status: string;
  docStatus: string;
  date: string;
  subject?: Reference;
  author?: Reference[];
  content: { attachment: { data: string } }[];
  context: { encounter?: Reference[]; period?: { start: string; end?: string }; related: Reference[] };
}

/** A page of notes. */
export interface Bundle {
  resourceType: string;
  total?: number;
  link: { relation: string; url: string }[];
  entry?: { fullUrl: string; resource: Note }[];
}

/** An OperationOutcome. */
export interface Outcome {
  resourceType: string;
  issue: { severity: string; code: string; diagnostics: string; details: { coding: { code: string }[] } }[];
}

/** Requests of the FHIR interface. Each answer must be valid R4. */
export function useFhir(world: World) {
  async function fhir<Body>(path: string, options: CallOptions = {}, method = 'GET'): Promise<Answer<Body>> {
    const answer = await world.call<Body>(method, path.replace(world.url, ''), options);
    expect(answer.headers.get('content-type')).toBe('application/fhir+json; charset=utf-8');
    expect(fhirFaults(answer.body as object)).toEqual([]);
    return answer;
  }
  const page = async (query: string, options?: CallOptions) => {
    const { status, body } = await fhir<Bundle>(`/fhir/DocumentReference${query && `?${query}`}`, options);
    expect([query, status, body.resourceType]).toEqual([query, 200, 'Bundle']);
    return body;
  };
  return {
    fhir,
    page,
    /** A search whose parameters are in the body. */
    async post<Body = Bundle>(form: string, options: CallOptions & { query?: string; type?: string } = {}) {
      const { query = '', type = 'application/x-www-form-urlencoded', ...more } = options;
      const body = form === '' ? undefined : Buffer.from(form);
      const path = `/fhir/DocumentReference/_search${query}`;
      return fhir<Body>(path, { ...more, body, headers: body && { 'content-type': type } }, 'POST');
    },
    /** The notes of all pages. */
    async all(query: string, options?: CallOptions): Promise<Note[]> {
      const notes: Note[] = [];
      let next: string | undefined = `/fhir/DocumentReference?${query}`;
      while (next !== undefined) {
        const { body }: Answer<Bundle> = await fhir<Bundle>(next, options);
        notes.push(...notesIn(body));
        next = linkOf(body, 'next');
      }
      return notes;
    },
    /** The status, the issue's code and the problem's type of a request that fails. */
    async fault(path: string, options?: CallOptions, method?: string): Promise<[number, string?, string?]> {
      const { status, body } = await fhir<Outcome>(path, options, method);
      expect(body.resourceType).toBe('OperationOutcome');
      return [status, body.issue[0]?.code, body.issue[0]?.details.coding[0]?.code];
    },
    /** Makes a key. */
    async keyWith(...scopes: Scope[]): Promise<string> {
      return (await world.call<{ key: string }>('POST', '/v1/api-keys', { body: { name: 'a key', scopes } })).body.key;
    },
  };
}

/** The notes on a page. */
export const notesIn = ({ entry = [] }: Bundle): Note[] => entry.map(({ resource }) => resource);

/** The link of a page to another one, or to itself. */
export const linkOf = ({ link }: Bundle, wanted: string): string | undefined =>
  link.find(({ relation }) => relation === wanted)?.url;

/** The Markdown of a note. */
export const textOf = ({ content }: Note): string =>
  Buffer.from(content[0]?.attachment.data ?? '', 'base64').toString('utf8');
