import { createReadStream, openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { kindsOfHeader } from '../../imports/parse/csv/csv-header.js';
import type { ImportKind } from '../../imports/parse/row/import-row.js';
import { CliFault, fileFault } from '../api/cli-fault.js';

/** Bytes of a file's beginning from which its kind is read. */
const BEGINNING = 64 * 1024;

/**
 * Looks at files and says what each holds.
 *
 * @param kind as the user said; otherwise it is guessed from each name and beginning
 * @throws {CliFault} for a file that can't be read or guessed, and for FHIR beside other formats
 */
export async function lookAtFiles(paths: readonly string[], kind?: ImportKind) {
  const files = await Promise.all(paths.map((file) => lookAt(file, kind)));
  const fhir = files.filter((file) => file.kind === 'fhir');
  if (fhir.length > 0 && fhir.length < files.length) {
    throw new CliFault('FHIR files and others can not go into one import: import them one after the other.');
  }
  return files;
}

async function lookAt(file: string, wanted: ImportKind | undefined) {
  const { beginning, bytes } = await beginningOf(file);
  const { kind, contradiction } = wanted ? { kind: wanted } : kindOf(path.basename(file), beginning);
  if (kind) return { path: file, kind, mediaType: mediaTypeOf(file, beginning, kind), bytes };
  const why = contradiction
    ? `The name of ${file} speaks of ${contradiction.name}, its header of ${contradiction.header}. Which does it hold?`
    : `It is not clear whom ${file} holds.`;
  throw new CliFault(`${why} Say --kind providers, clients or fhir.`);
}

async function beginningOf(file: string): Promise<{ beginning: string; bytes: number }> {
  try {
    const { size } = await stat(file);
    let beginning = '';
    for await (const chunk of createReadStream(file, { encoding: 'utf8', end: BEGINNING })) beginning += chunk;
    return { beginning: beginning.replace(/^\ufeff/, '').trimStart(), bytes: size };
  } catch (error) {
    throw fileFault(file, error);
  }
}

/** The files as one form; each is read from disk only while it is being sent. */
export async function formOf(files: Awaited<ReturnType<typeof lookAtFiles>>): Promise<FormData> {
  const form = new FormData();
  for (const file of files) {
    form.append(file.kind, await openAsBlob(file.path, { type: file.mediaType }), path.basename(file.path));
  }
  return form;
}

/**
 * What a file holds. Its header decides; the name only where the header says nothing, and never against it.
 *
 * @param name without folders
 * @param beginning of the file, from its first line that is not blank
 * @returns without `kind` where it is not clear
 */
export function kindOf(
  name: string,
  beginning: string,
): { kind?: ImportKind; contradiction?: { name: ImportKind; header: ImportKind } } {
  const inHeader = kindsOfBeginning(name, beginning);
  const header = inHeader.length === 1 ? inHeader[0] : undefined;
  const isOfProviders = /provider|practitioner|clinician|therapist/i.test(name);
  const isOfClients = /client|patient/i.test(name);
  // A name may speak of both: `patients_by_provider.csv`.
  const byName = isOfProviders === isOfClients ? undefined : isOfProviders ? 'providers' : 'clients';
  const kind = header ?? byName;
  if (header && header !== 'fhir' && byName && byName !== header) return { contradiction: { name: byName, header } };
  return kind ? { kind } : {};
}

function kindsOfBeginning(name: string, beginning: string): ImportKind[] {
  if (!isJson(beginning)) return kindsOfHeader(beginning);
  const [firstLine = ''] = /^[^\r\n]*/.exec(beginning) ?? [];
  if (firstLine.includes('"resourceType"') || /\.json$/i.test(name)) return ['fhir'];
  return /"providers" ?:/.test(firstLine) ? ['clients'] : [];
}

function isJson(beginning: string): boolean {
  return /^[{[]/.test(beginning);
}

function mediaTypeOf(file: string, beginning: string, kind: ImportKind): string {
  if (!isJson(beginning)) return 'text/csv';
  if (kind !== 'fhir') return 'application/x-ndjson';
  return /\.json$/i.test(file) ? 'application/fhir+json' : 'application/fhir+ndjson';
}
