import { openAsBlob } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import type { ImportQuery } from '../../imports/api/imports.dto.js';
import { fileFault } from '../api/cli-fault.js';

const MEDIA_TYPES: Record<string, string> = {
  '.csv': 'text/csv',
  '.tsv': 'text/csv',
  '.txt': 'text/csv',
  '.ndjson': 'application/x-ndjson',
  '.jsonl': 'application/x-ndjson',
  '.json': 'application/fhir+json',
};

/**
 * Files as one form. Providers go first, because the clients name them. Each file is read while it is being sent.
 *
 * @param kind the kind of all files; undefined: the service detects the kind of each
 * @throws {CliFault} if a file cannot be read
 */
export async function formOf(paths: readonly string[], kind?: ImportQuery['kind']) {
  const form = new FormData();
  const part = kind === undefined || kind === 'fhir' ? 'file' : kind;
  let bytes = 0;
  for (const file of [...paths].sort((left, right) => rank(left) - rank(right))) {
    await requireReadable(file);
    const blob = await openAsBlob(file, {
      type: MEDIA_TYPES[path.extname(file).toLowerCase()] ?? 'application/octet-stream',
    });
    form.append(part, blob, path.basename(file));
    bytes += blob.size;
  }
  return { form, bytes };
}

/** A name may contain both, such as `patients_by_provider.csv`. */
function rank(file: string): number {
  const name = path.basename(file);
  return /provider|practitioner|clinician|therapist/i.test(name) && !/client|patient/i.test(name) ? 0 : 1;
}

/** Reads one byte, because `openAsBlob` does not report why a file is unreadable. */
async function requireReadable(file: string): Promise<void> {
  try {
    const handle = await open(file);
    await handle.read(Buffer.alloc(1)).finally(() => handle.close());
  } catch (error) {
    throw fileFault(file, error);
  }
}
