import { Problem } from '../../http/problem/problem.js';
import { APPOINTMENT_SYSTEM, CLIENT_SYSTEM } from '../../sessions/read/notes-fhir.js';
import { readIdentifierToken } from './identifier-token.js';
import { IDENTIFIERS, isUnsupportedForm } from './search-parameters.js';
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
  /** True if an identifier of another system is asked for, which no note has. */
  readonly matchesNone: boolean;
  readonly date: TimeRange;
  readonly lastUpdated: TimeRange;
  /** Documents on a page. */
  readonly count: number;
  readonly cursor: string | undefined;
  /** The honoured parameters, for links to pages. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

const SYSTEMS = { client: CLIENT_SYSTEM, appointment: APPOINTMENT_SYSTEM };

const FORMATS = ['json', 'application/json', 'application/fhir+json'];

/**
 * Reads the parameters of a search. Empty ones are ignored (FHIR R4 §3.1.1.4.2).
 *
 * @param query values by name; a list for a repeated parameter
 * @param isStrict rejects unknown parameters, too (`Prefer: handling=strict`, FHIR R4 §3.1.1.4.2)
 * @throws {Problem} 400 `bad-search`, `search-not-supported`; 406 `not-acceptable`
 */
export function readNoteSearch(query: Readonly<Record<string, unknown>>, isStrict: boolean): NoteSearch {
  const given = new Map(
    Object.entries(query).flatMap(([name, value]) => {
      const values = [value].flat().filter((each): each is string => typeof each === 'string' && each !== '');
      return values.length > 0 ? [[name, values] as const] : [];
    }),
  );
  const read: [name: string, value: string][] = [];
  const take = (name: string): string[] => {
    const values = given.get(name) ?? [];
    given.delete(name);
    for (const value of values) read.push([name, value]);
    return values;
  };
  const takeOne = (...names: readonly string[]): string | undefined => {
    const values = names.flatMap(take);
    if (values.length > 1) throw notSupported(`${names.join(' or ')} can be given only once.`);
    return values[0];
  };
  const client = identifierOf('client', takeOne(...IDENTIFIERS.client));
  const appointment = identifierOf('appointment', takeOne(...IDENTIFIERS.appointment));
  const search = {
    client: client?.value,
    appointment: appointment?.value,
    matchesNone: client?.value === null || appointment?.value === null,
    date: rangeOf('date', take('date')),
    lastUpdated: rangeOf('_lastUpdated', take('_lastUpdated')),
    count: countOf(takeOne('_count')),
  };
  const parameters = [...read];
  const cursor = takeOne(CURSOR);
  const format = takeOne('_format');
  if (format !== undefined && !isJsonFormat(format)) throw notAcceptable();
  refuseOthers([...given.keys()], isStrict);
  return {
    ...search,
    client: search.client ?? undefined,
    appointment: search.appointment ?? undefined,
    cursor,
    parameters,
  };
}

/** True for a value of `_format` that means JSON. A + that is not escaped in a URL arrives as a space. */
export const isJsonFormat = (format: string): boolean => FORMATS.includes(format.replace(' ', '+'));

/** The answer to a request for another format. */
export function notAcceptable(): Problem {
  return new Problem(406, 'not-acceptable', 'FHIR resources are available as application/fhir+json.');
}

/** An identifier; its value is null if it has another system. */
function identifierOf(kind: keyof typeof SYSTEMS, text: string | undefined): { value: string | null } | undefined {
  if (text === undefined) return undefined;
  const token = readIdentifierToken(text);
  if (!token) throw badSearch(`${IDENTIFIERS[kind][0]} must be one identifier: value or system|value.`);
  const isOwn = token.system === undefined || token.system === SYSTEMS[kind];
  return { value: isOwn ? token.value : null };
}

function rangeOf(name: string, values: readonly string[]): TimeRange {
  return values.reduce((range, value) => {
    const own = readTimeRange(value);
    if (own) return both(range, own);
    if (/^(ne|ap)/.test(value)) throw notSupported(`${name} takes the prefixes eq, gt, ge, lt, le, sa and eb.`);
    throw badSearch(`${name} must be one date or time, such as ge2026-01-31 or 2026-01-31T08:00:00Z; encode + as %2B.`);
  }, ANY_TIME);
}

function countOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_COUNT;
  if (!/^0*[1-9]\d*$/.test(text)) throw badSearch('_count must be a whole number of at least 1.');
  return Math.min(Number(text), MAX_COUNT);
}

/** Names of parameters are not quoted, because callers may send anything. */
function refuseOthers(names: readonly string[], isStrict: boolean): void {
  if (names.some(isUnsupportedForm))
    throw notSupported('The search uses an unsupported form or modifier. /fhir/metadata lists the supported ones.');
  if (isStrict && names.length > 0)
    throw notSupported('The search has an unknown parameter. /fhir/metadata lists the known ones.');
}

const badSearch = (detail: string) => new Problem(400, 'bad-search', detail);
const notSupported = (detail: string) => new Problem(400, 'search-not-supported', detail);
