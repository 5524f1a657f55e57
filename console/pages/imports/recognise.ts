export type Kind = 'providers' | 'clients' | 'fhir';

/** Bytes of a file's beginning from which its kind is read. */
export const BEGINNING = 64 * 1024;

/** Titles that may stand above a header, and how many cells a title has at most. */
const TITLES_MAX = 20;
const TITLE_CELLS = 2;

const DELIMITERS = [',', ';', '\t', '|'];

const ID =
  /^(?:externalid|externaluserid|partneruserid|mrn|medicalrecordn(?:umber|o)|recordnumber|chart(?:number|id)|ehrid|emrid|uuid|uid|id)$/;
const CLIENT_ID = /^(?:patient|client|member|person|user)(?:number|no|identifier|code|key|externalid|uuid|uid|id)$/;
const PROVIDER_ID =
  /^(?:provider|therapist|clinician|practitioner|doctor|staff|employee|person|user)(?:number|no|identifier|code|key|externalid|uuid|uid|id)$/;
const PROVIDERS =
  /^(?:primary|assigned|treating|main)?(?:(?:provider|therapist|clinician|practitioner|counsell?or|psychologist|psychiatrist|physician|doctor)s?(?:externalids?|ids?)?|generalpractitioners?|careteam)$/;
const OF_CLIENTS = /^(?:patient|client|member)|birth|dob|^mrn$|medicalrecord/;
const OF_PROVIDERS = /^npi$|nationalprovideridentifier|licen[cs]e|credential|taxonomy/;

/**
 * Whom a file holds: its header decides, its name only where the header says nothing.
 *
 * @param beginning of the file
 * @returns without `kind` where it is not clear, or the two contradict each other: then a person says it
 */
export function recognise(name: string, beginning: string): { kind?: Kind; mediaType: string } {
  const text = beginning.replace(/^\ufeff/, '').trimStart();
  const isJson = /^[{[]/.test(text);
  const found = isJson ? kindsOfJson(name, text) : kindsOfHeader(text);
  const header = found.length === 1 ? found[0] : undefined;
  const isOfProviders = /provider|practitioner|clinician|therapist/i.test(name);
  const isOfClients = /client|patient/i.test(name);
  const byName = isOfProviders === isOfClients ? undefined : isOfProviders ? 'providers' : 'clients';
  const isContradicted = header && header !== 'fhir' && byName && byName !== header;
  const kind = isContradicted ? undefined : (header ?? byName);
  return { kind, mediaType: isJson ? jsonType(name, header) : 'text/csv' };
}

function jsonType(name: string, kind: Kind | undefined): string {
  if (kind !== 'fhir') return 'application/x-ndjson';
  return /\.json$/i.test(name) ? 'application/fhir+json' : 'application/fhir+ndjson';
}

function kindsOfJson(name: string, text: string): Kind[] {
  const [firstLine = ''] = /^[^\r\n]*/.exec(text) ?? [];
  if (firstLine.includes('"resourceType"') || /\.json$/i.test(name)) return ['fhir'];
  return /"providers" ?:/.test(firstLine) ? ['clients'] : [];
}

function kindsOfHeader(text: string): Kind[] {
  const names = headerOf(text).map(plain);
  const has = (pattern: RegExp) => names.some((name) => pattern.test(name));
  const hasOwnId = has(ID) || has(CLIENT_ID);
  if (names.includes('kind') && hasOwnId) return ['fhir'];
  const isOfClients = has(OF_CLIENTS) || (hasOwnId && has(PROVIDERS));
  const isOfProviders = has(OF_PROVIDERS) || (!hasOwnId && has(PROVIDER_ID));
  return [...(isOfClients ? ['clients' as const] : []), ...(isOfProviders ? ['providers' as const] : [])];
}

/** The first line that is more than a title, cut at the delimiter that gives most cells. */
function headerOf(text: string): string[] {
  for (const line of text.split(/\r\n?|\n/, TITLES_MAX)) {
    const [cells = []] = DELIMITERS.map((delimiter) => line.split(delimiter)).sort((a, b) => b.length - a.length);
    if (cells.filter((cell) => cell.trim() !== '').length > TITLE_CELLS) return cells;
  }
  return [];
}

/** Letters and digits only, in lower case, as the service matches the names of columns. */
function plain(name: string): string {
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');
}
