import path from 'node:path';
import { Problem } from '../../http/problem/problem.js';
import type { ImportFormat, ImportKind } from '../parse/row/import-row.js';

/** One file of an import as it comes in. */
export interface UploadedFile {
  /** As the sender named it, or the content's kind; shown beside the line number and kept sealed only. */
  name: string;
  /** The multipart field's name; undefined for a raw body. */
  field?: string;
  mediaType: string;
  content: AsyncIterable<Buffer>;
}

/** Maps, for a sender may name anything: `__proto__` is a member of every object. */
const FORMATS = new Map<string, ImportFormat>(
  Object.entries({
    'text/csv': 'csv',
    'application/csv': 'csv',
    'application/vnd.ms-excel': 'csv',
    'application/x-ndjson': 'ndjson',
    'application/ndjson': 'ndjson',
    'application/jsonl': 'ndjson',
    'application/fhir+ndjson': 'fhir-ndjson',
    'application/fhir+json': 'fhir-json',
  }),
);

const EXTENSIONS = new Map<string, ImportFormat>(
  Object.entries({
    '.csv': 'csv',
    '.tsv': 'csv',
    '.txt': 'csv',
    '.ndjson': 'ndjson',
    '.jsonl': 'ndjson',
    '.json': 'fhir-json',
  }),
);

/**
 * How a file is read: by its media type, else by its name's ending.
 *
 * @throws {Problem} 415 `unknown-format`, or 422 `wrong-part` when a part's name does not say what it holds
 */
export function readingOf(file: UploadedFile, kind: ImportKind): { format: ImportFormat; kind: ImportKind } {
  const found = FORMATS.get(file.mediaType) ?? EXTENSIONS.get(path.extname(file.name).toLowerCase());
  if (!found) {
    const detail =
      'The content type of a file is not one that can be imported; send text/csv, application/x-ndjson, application/fhir+ndjson or application/fhir+json.';
    throw new Problem(415, 'unknown-format', detail, { extensions: { file: file.name } });
  }
  if (kind === 'fhir') {
    return { format: found === 'ndjson' ? 'fhir-ndjson' : found, kind };
  }
  if (found === 'fhir-json' || found === 'fhir-ndjson') {
    const extensions = { file: file.name };
    throw new Problem(415, 'unknown-format', 'A file is FHIR; import it with kind=fhir.', { extensions });
  }
  if (file.field === undefined) return { format: found, kind };
  if (file.field === 'providers' || file.field === 'clients') return { format: found, kind: file.field };
  const detail = 'A part of CSV or JSON lines must be named providers or clients, so that it is clear what it holds.';
  throw new Problem(422, 'wrong-part', detail);
}
