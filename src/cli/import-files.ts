import { createReadStream, openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { CliFault } from './cli-fault.js';
import { fileFault } from './file-fault.js';

export type ImportKind = 'providers' | 'clients' | 'fhir';

/** One file that is to be imported. */
export interface ImportFile {
  path: string;
  kind: ImportKind;
  mediaType: string;
  bytes: number;
}

/** Characters of a file's first line that are looked at. */
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
  const { firstLine, bytes } = await beginningOf(file);
  const guessed = kind ?? kindOf(path.basename(file), firstLine);
  if (!guessed) throw new CliFault(`It is not clear whom ${file} holds: say --kind providers, clients or fhir.`);
  return { path: file, kind: guessed, mediaType: mediaTypeOf(file, firstLine, guessed), bytes };
}

async function beginningOf(file: string): Promise<{ firstLine: string; bytes: number }> {
  try {
    const { size } = await stat(file);
    const lines = createInterface({ input: createReadStream(file, { encoding: 'utf8', end: LOOK }) });
    for await (const line of lines) {
      if (line.trim() !== '') return { firstLine: line.replace(/^\ufeff/, ''), bytes: size };
    }
    return { firstLine: '', bytes: size };
  } catch (error) {
    throw fileFault(file, error);
  }
}

/**
 * Whom a file holds, where its name or its first line makes that clear.
 *
 * @param name without folders
 * @param firstLine the first line that is not blank
 */
export function kindOf(name: string, firstLine: string): ImportKind | undefined {
  if (isJson(firstLine)) {
    if (firstLine.includes('"resourceType"') || name.toLowerCase().endsWith('.json')) return 'fhir';
    if (/"providers"\s*:/.test(firstLine)) return 'clients';
  } else if (columnsOf(firstLine).some((column) => /^(providers?|therapists?|clinicians?)$/.test(column))) {
    return 'clients';
  }
  if (/provider|practitioner|clinician|therapist/i.test(name)) return 'providers';
  if (/client|patient/i.test(name)) return 'clients';
  return undefined;
}

function isJson(firstLine: string): boolean {
  return /^\s*[{[]/.test(firstLine);
}

function columnsOf(header: string): string[] {
  return header.split(/[,;\t]/).map((column) => column.toLowerCase().replace(/[^a-z]/g, ''));
}

function mediaTypeOf(file: string, firstLine: string, kind: ImportKind): string {
  if (kind === 'fhir') return /\.json$/i.test(file) ? 'application/fhir+json' : 'application/fhir+ndjson';
  return isJson(firstLine) ? 'application/x-ndjson' : 'text/csv';
}

/** The files as one form; each is read from disk only while it is being sent. */
export async function formOf(files: readonly ImportFile[]): Promise<FormData> {
  const form = new FormData();
  for (const file of files) {
    form.append(file.kind, await openAsBlob(file.path, { type: file.mediaType }), path.basename(file.path));
  }
  return form;
}
