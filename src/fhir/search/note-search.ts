import { Problem } from '../../http/problem/problem.js';
import { UUID } from '../../http/request/uuid-param.js';
import { APPOINTMENT_SYSTEM, CLIENT_SYSTEM } from '../../sessions/read/notes-fhir.js';
import { readIdentifierToken } from './identifier-token.js';
import { isUnsupportedForm, NAMES } from './search-parameters.js';
import { ANY_TIME, both, readTimeRange, type TimeRange } from './time-range.js';

/** Documents on a page by default. */
const DEFAULT_COUNT = 20;

/** Maximum documents on a page, because each is decrypted. */
export const MAX_COUNT = 50;

/** The name of the cursor in `next` links. */
export const CURSOR = '_cursor';

/** A search for notes. */
export interface NoteSearch {
  /** External id of a client. */
  readonly client: string | undefined;
  /** The EHR's id of an appointment. */
  readonly appointment: string | undefined;
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
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

const SYSTEMS = { client: CLIENT_SYSTEM, appointment: APPOINTMENT_SYSTEM };

const FORMATS = ['json', 'application/json', 'application/fhir+json'];

/**
 * Reads the parameters of a search. Empty ones are ignored (FHIR R4 §3.1.1.4.2), except ids: an unset variable of a client
 * would give it all notes.
 *
 * @param query values by name; a list for a repeated parameter
 * @param isStrict rejects unknown parameters, too (`Prefer: handling=strict`, FHIR R4 §3.1.1.4.2)
 * @throws {Problem} 400 `bad-search`, `search-not-supported`; 406 `not-acceptable`
 */
export function readNoteSearch(query: Readonly<Record<string, unknown>>, isStrict: boolean): NoteSearch {
  const given = new Map(Object.entries(query).map(([name, value]) => [name, [value].flat().filter(isText)]));
  const read: [name: string, value: string][] = [];
  const take = (name: string): string[] => {
    const values = given.get(name)?.filter((value) => value !== '') ?? [];
    given.delete(name);
    for (const value of values) read.push([name, value]);
    return values;
  };
  const takeOne = (...names: readonly string[]): string | undefined => {
    const values = names.flatMap(take);
    if (values.length > 1) throw notSupported(`${names.join(' or ')} can be given only once.`);
    return values[0];
  };
  const takeId = (kind: keyof typeof NAMES): string | undefined => {
    const empty = NAMES[kind].find((name) => given.get(name)?.includes(''));
    if (empty !== undefined) throw badSearch(`${empty} is empty. Give a value, or leave it out to search all notes.`);
    return takeOne(...NAMES[kind]);
  };
  const client = identifierOf('client', takeId('client'));
  const appointment = identifierOf('appointment', takeId('appointment'));
  const document = documentOf(takeId('document'));
  const date = rangeOf('date', take('date'));
  const lastUpdated = rangeOf('_lastUpdated', take('_lastUpdated'));
  const format = takeOne('_format');
  if (format !== undefined && !isJsonFormat(format)) throw notAcceptable();
  const parameters = [...read];
  const count = countOf(takeOne('_count'));
  if (count !== undefined) parameters.push(['_count', String(count)]);
  const cursor = takeOne(CURSOR);
  refuseOthers(given, isStrict);
  return {
    client: client ?? undefined,
    appointment: appointment ?? undefined,
    document: document ?? undefined,
    matchesNone: [client, appointment, document].includes(null),
    date,
    lastUpdated,
    count: count ?? DEFAULT_COUNT,
    cursor,
    parameters,
  };
}

const isText = (value: unknown): value is string => typeof value === 'string';

/** True for a value of `_format` that means JSON. A + that is not escaped in a URL arrives as a space. */
export const isJsonFormat = (format: string): boolean => FORMATS.includes(format.replace(' ', '+'));

/** The answer to a request for another format. */
export function notAcceptable(): Problem {
  return new Problem('not-acceptable', 'FHIR resources are available as application/fhir+json.');
}

/** The value of an identifier; null if it has another system. */
function identifierOf(kind: keyof typeof SYSTEMS, text: string | undefined): string | null | undefined {
  if (text === undefined) return undefined;
  const token = readIdentifierToken(text);
  if (!token) throw badSearch(`${NAMES[kind][0]} must be one identifier: value or system|value.`);
  return token.system === undefined || token.system === SYSTEMS[kind] ? token.value : null;
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
    if (/^(ne|ap)/.test(value)) throw notSupported(`${name} takes the prefixes eq, gt, ge, lt, le, sa and eb.`);
    throw badSearch(`${name} must be one date or time, such as ge2026-01-31 or 2026-01-31T08:00:00Z; encode + as %2B.`);
  }, ANY_TIME);
}

function countOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d+$/.test(text)) throw badSearch('_count must be a whole number of at least 1.');
  // In R4 it asks for the total only, which is not counted.
  if (Number(text) === 0) throw notSupported('_count=0 is not supported, because totals are not counted.');
  return Math.min(Number(text), MAX_COUNT);
}

/** Names of parameters are not quoted, because callers may send anything. */
function refuseOthers(others: ReadonlyMap<string, readonly string[]>, isStrict: boolean): void {
  if ([...others.keys()].some(isUnsupportedForm))
    throw notSupported(
      'The search uses a form, modifier or parameter that is not supported and must not be ignored. /fhir/metadata lists the supported ones.',
    );
  if (isStrict && [...others.values()].flat().some((value) => value !== ''))
    throw notSupported('The search has an unknown parameter. /fhir/metadata lists the known ones.');
}

const badSearch = (detail: string) => new Problem('bad-search', detail);
const notSupported = (detail: string) => new Problem('search-not-supported', detail);
