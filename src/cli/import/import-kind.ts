import { kindsOfHeader } from '../../imports/parse/csv/csv-layout.js';
import type { ImportKind } from '../../imports/parse/row/import-row.js';

type People = 'providers' | 'clients';

/** Whom a file holds, or why that is not clear. */
export type KindGuess = { kind: ImportKind } | { contradiction?: { name: People; header: People } };

/**
 * Whom a file holds. Its header decides; the name only where the header says nothing, and never against it.
 *
 * @param name without folders
 * @param beginning of the file, from its first line that is not blank
 */
export function kindOf(name: string, beginning: string): KindGuess {
  const named = kindsOfName(name);
  const said = kindsOfBeginning(name, beginning);
  if (said.includes('fhir')) return { kind: 'fhir' };
  const [header, another] = said as People[];
  const [byName, moreNames] = named;
  if (!header || another) return byName && !moreNames ? { kind: byName } : {};
  return byName && !moreNames && byName !== header ? { contradiction: { name: byName, header } } : { kind: header };
}

/** A name may speak of both: `patients_by_provider.csv`. */
function kindsOfName(name: string): People[] {
  const providers = /provider|practitioner|clinician|therapist/i.test(name);
  const clients = /client|patient/i.test(name);
  return [...(providers ? ['providers' as const] : []), ...(clients ? ['clients' as const] : [])];
}

function kindsOfBeginning(name: string, beginning: string): ImportKind[] {
  const [firstLine = ''] = /^[^\r\n]*/.exec(beginning) ?? [];
  if (!/^[{[]/.test(firstLine)) return kindsOfHeader(beginning);
  if (firstLine.includes('"resourceType"') || name.toLowerCase().endsWith('.json')) return ['fhir'];
  return /"providers" ?:/.test(firstLine) ? ['clients'] : [];
}
