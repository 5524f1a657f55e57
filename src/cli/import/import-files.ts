import { createReadStream, openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { kindsOfHeader } from '../../imports/parse/csv/csv-layout.js';
import type { ImportKind } from '../../imports/parse/row/import-row.js';
import { CliFault, fileFault } from '../api/cli-fault.js';

/** One file that is to be imported. */
export interface ImportFile {
  path: string;
  kind: ImportKind;
  mediaType: string;
  bytes: number;
}

/** Bytes of a file's beginning that are looked at. */
const LOOK = 64 * 1024;

/**
 * Looks at files and says what each holds.
 *
 * @param kind as the user said; otherwise it is guessed from each name and beginning
 * @throws {CliFault} for a file that can't be read or guessed, and for FHIR beside other formats
 */
export async function lookAtFiles(paths: readonly string[], kind?: ImportKind): Promise<ImportFile[]> {
  const files = await Promise.all(paths.map((file) => lookAt(file, kind)));
  const fhir = files.filter((file) => file.kind === 'fhir');
  if (fhir.length > 0 && fhir.length < files.length) {
    throw new CliFault('FHIR files and others can not go into one import: import them one after the other.');
  }
  return files;
}

async function lookAt(file: string, kind: ImportKind | undefined): Promise<ImportFile> {
  const { beginning, bytes } = await beginningOf(file);
  const guess = kind ? { kind } : kindOf(path.basename(file), beginning);
  if ('kind' in guess)
    return { path: file, kind: guess.kind, mediaType: mediaTypeOf(file, beginning, guess.kind), bytes };
  const why = guess.contradiction
    ? `The name of ${file} speaks of ${guess.contradiction.name}, its header of ${guess.contradiction.header}. Which does it hold?`
    : `It is not clear whom ${file} holds.`;
  throw new CliFault(`${why} Say --kind providers, clients or fhir.`);
}

async function beginningOf(file: string): Promise<{ beginning: string; bytes: number }> {
  try {
    const { size } = await stat(file);
    let beginning = '';
    for await (const chunk of createReadStream(file, { encoding: 'utf8', end: LOOK })) beginning += chunk;
    return { beginning: beginning.replace(/^\ufeff/, '').trimStart(), bytes: size };
  } catch (error) {
    throw fileFault(file, error);
  }
}

function isJson(beginning: string): boolean {
  return /^[{[]/.test(beginning);
}

function mediaTypeOf(file: string, beginning: string, kind: ImportKind): string {
  if (!isJson(beginning)) return 'text/csv';
  if (kind !== 'fhir') return 'application/x-ndjson';
  return /\.json$/i.test(file) ? 'application/fhir+json' : 'application/fhir+ndjson';
}

/** The files as one form; each is read from disk only while it is being sent. */
export async function formOf(files: readonly ImportFile[]): Promise<FormData> {
  const form = new FormData();
  for (const file of files) {
    form.append(file.kind, await openAsBlob(file.path, { type: file.mediaType }), path.basename(file.path));
  }
  return form;
}

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
