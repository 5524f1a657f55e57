import { Problem } from '../../http/problem/problem.js';
import { UUID } from '../../http/request/uuid-param.js';
import { CLIENT_SYSTEM } from '../../sessions/read/notes-fhir.js';
import { ANY_TIME, both, readTimeRange, type TimeRange } from './time-range.js';

/** A parameter of a request, as it was sent. */
export type Parameter = readonly [name: string, value: string];

/** Documents on a page by default. */
const DEFAULT_COUNT = 20;

/** Maximum documents on a page, because each is decrypted. */
export const MAX_COUNT = 50;

/** The two forms of a client's identifier in a search: chained, and with a modifier (FHIR R4 §3.1.1.4.4). */
const PATIENT = ['patient.identifier', 'patient:identifier'];

/** `system|value`, `|value` or `value`, with the escapes `\|`, `\,`, `\$` and `\\` (FHIR R4 §3.1.1.4.10). */
const TOKEN = /^(?:((?:[^\\|,]|\\.)*)\|)?((?:[^\\|,]|\\.)+)$/s;

/** The name of the cursor in `next` links. */
export const CURSOR = '_cursor';

/** Parameters that are read. */
const READ = [...PATIENT, '_id', 'date', '_lastUpdated', '_count', '_format', CURSOR];

/** Parameters that are ignored: they change only how an answer looks. */
const IGNORED = ['_pretty', '_total'];

/** Names that an error repeats. Others may be data that was sent as a name. */
const NAME = /^[\w.:[\]-]{1,64}$/;

/** A search for notes. */
export interface NoteSearch {
  /** External id of a client. */
  readonly client: string | undefined;
  /** Id of a document. */
  readonly document: string | undefined;
  /** True if an identifier of another system or an id that is not a UUID is asked for, which no note has. */
  readonly matchesNone: boolean;
  readonly date: TimeRange;
  readonly lastUpdated: TimeRange;
  /** Documents on a page. */
  readonly count: number;
  readonly cursor: string | undefined;
  /** The honoured parameters with the used values, for links to pages. */
  readonly parameters: readonly Parameter[];
}

/**
 * Reads the parameters of a search. One that is unknown, empty, or in another form is rejected, also with
 * `Prefer: handling=lenient`: it was meant to narrow the search, and to ignore it would show the notes of others.
 *
 * @throws {Problem} 400 `bad-search`, `search-not-supported`
 */
export function readNoteSearch(given: readonly Parameter[]): NoteSearch {
  for (const [name, value] of given) {
    if (!READ.includes(name) && !IGNORED.includes(name)) throw notSupported(name);
    if (value === '') throw badSearch(`${name} is empty. Give a value, or leave it out to search all notes.`);
  }
  const valuesOf = (...names: string[]) => given.filter(([name]) => names.includes(name)).map(([, value]) => value);
  const oneOf = (...names: string[]): string | undefined => {
    const [value, ...more] = valuesOf(...names);
    if (more.length > 0) throw notSupported(names[0] ?? '');
    return value;
  };
  const client = clientOf(oneOf(...PATIENT));
  const document = documentOf(oneOf('_id'));
  const date = rangeOf('date', valuesOf('date'));
  const lastUpdated = rangeOf('_lastUpdated', valuesOf('_lastUpdated'));
  const count = countOf(oneOf('_count'));
  return {
    client: client ?? undefined,
    document: document ?? undefined,
    matchesNone: client === null || document === null,
    date,
    lastUpdated,
    count,
    cursor: oneOf(CURSOR),
    parameters: given
      .filter(([name]) => READ.includes(name) && name !== CURSOR)
      .map(([name, value]) => [name, name === '_count' ? String(count) : value]),
  };
}

/** True for a parameter that names a person, so that links to other pages leave it to their cursor. */
export const namesPerson = ([name]: Parameter): boolean => PATIENT.includes(name);

/** The external id of a client; null if the identifier has another system. */
function clientOf(text: string | undefined): string | null | undefined {
  if (text === undefined) return undefined;
  const [, system, value] = TOKEN.exec(text)?.map((part) => part?.replace(/\\([\\|,$])/g, '$1')) ?? [];
  if (value === undefined) throw badSearch(`${PATIENT[0]} must be one identifier: value or system|value.`);
  return system === undefined || system === CLIENT_SYSTEM ? value : null;
}

/** The id of a document; null if no document can have it. */
function documentOf(text: string | undefined): string | null | undefined {
  if (text?.includes(',')) throw badSearch('_id must be one id.');
  return text === undefined || UUID.test(text) ? text : null;
}

function rangeOf(name: string, values: readonly string[]): TimeRange {
  return values.reduce((range, value) => {
    const own = readTimeRange(value);
    if (own) return both(range, own);
    throw badSearch(
      `${name} must be one date or time, such as ge2026-01-31 or 2026-01-31T08:00:00Z, with no prefix but eq, gt, ge, lt, le, sa and eb; encode + as %2B.`,
    );
  }, ANY_TIME);
}

function countOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_COUNT;
  if (!/^0*[1-9]\d*$/.test(text))
    throw badSearch('_count must be a whole number of at least 1: totals are not counted.');
  return Math.min(Number(text), MAX_COUNT);
}

const badSearch = (detail: string) => new Problem('bad-search', detail);
function notSupported(parameter: string): Problem {
  const detail = 'The search has a parameter that is not supported in this form, or twice. See /fhir/metadata.';
  return new Problem('search-not-supported', detail, { extensions: NAME.test(parameter) ? { parameter } : {} });
}
