import path from 'node:path';
import { Problem } from '../../http/problem/problem.js';
import { type JsonObject, parseObject } from '../../text/json-object.js';
import type { ProblemType } from '../../words/problem-types.js';
import { kindsOfColumns } from './csv/column-names.js';
import { detectLayout } from './csv/layout.js';
import type { FileKind, ImportFormat } from './row/import-row.js';
import { encodingOf, notTextHint } from './text/file-text.js';

/** A file before it is read. */
export interface FileFacts {
  /** Without folders. */
  name: string;
  /** The name of its part of a multipart body. */
  field?: string | undefined;
  /** Empty if unknown. */
  mediaType: string;
  /** Its first 64 KiB or more, or the whole file. */
  beginning: Buffer;
  /** The kind that the user chose. */
  wanted?: 'providers' | 'clients' | 'fhir' | undefined;
}

/**
 * Detects the format of a file and the kind of its people. The format follows from media type, extension or content;
 * the kind from the name of the part, the user's choice, the content, or the name of the file, in this order.
 *
 * @throws {Problem} 415 `unknown-format`; 422 `unclear-kind`, `wrong-part`
 */
export function detectFile(file: FileFacts): { format: ImportFormat; kind: FileKind } {
  const hint = notTextHint(file.beginning);
  if (hint) throw refusal('unknown-format', hint, file);
  const text = new TextDecoder(encodingOf(file.beginning)).decode(file.beginning);
  const json = jsonBeginning(text);
  const format = formatOf(file, text, json);
  const isFhir = format === 'fhir-ndjson' || format === 'fhir-json';
  const kinds = kindsOfContent(format, text, json);
  const chosen = chosenKind(file, isFhir, kinds);
  const found = kinds.length === 1 ? kinds[0] : undefined;
  const named = kindOfName(file.name);
  const kind = chosen ?? found ?? named;
  if (!kind) {
    const detail =
      'It is not clear whether the file contains providers or clients. Choose the kind: providers, clients or fhir.';
    throw refusal('unclear-kind', detail, file);
  }
  if (!chosen && named && kind !== named && (kind === 'providers' || kind === 'clients')) {
    const detail = `The name of the file suggests ${named}, but its columns suggest ${kind}. Choose the kind: providers, clients or fhir.`;
    throw refusal('unclear-kind', detail, file);
  }
  return { format, kind };
}

function refusal(type: ProblemType, detail: string, { name }: FileFacts): Problem {
  return new Problem(type, detail, { extensions: { file: name } });
}

const PARTS: readonly string[] = ['providers', 'clients', 'fhir', 'both'] satisfies FileKind[];

/** The kind from the part's name or the user's choice; undefined without either. */
function chosenKind(file: FileFacts, isFhir: boolean, kinds: readonly FileKind[]): FileKind | undefined {
  const { wanted, field } = file;
  if (wanted === 'providers' || wanted === 'clients') {
    // With kind=clients, a part named providers contains the providers of these clients.
    if (!isFhir) return field === 'providers' || field === 'clients' ? field : wanted;
    const detail = `The file contains FHIR resources, not ${wanted}. Choose fhir, or no kind.`;
    throw refusal('unclear-kind', detail, file);
  }
  // Rows that name their kind were once exported from FHIR.
  if (wanted === 'fhir') return isFhir ? 'fhir' : 'both';
  if (field === undefined || !PARTS.includes(field)) return undefined;
  if (isFhir !== (field === 'fhir')) {
    const found = isFhir
      ? 'contains FHIR resources. Name the part fhir'
      : 'is not FHIR. Name the part providers or clients';
    throw refusal('wrong-part', `The part is named ${field}, but its file ${found}.`, file);
  }
  // Each row of such a file names its kind.
  return kinds.includes('both') ? 'both' : (field as FileKind);
}

/** The formats that media types and extensions declare. */
const DECLARED: { format: ImportFormat; names: string[] }[] = [
  { format: 'csv', names: ['text/csv', 'application/csv', 'application/vnd.ms-excel', '.csv', '.tsv', '.txt'] },
  { format: 'ndjson', names: ['application/x-ndjson', 'application/ndjson', 'application/jsonl', '.ndjson', '.jsonl'] },
  { format: 'fhir-ndjson', names: ['application/fhir+ndjson'] },
  { format: 'fhir-json', names: ['application/fhir+json'] },
];

const KNOWN_FORMATS =
  'CSV (text/csv), JSON lines (application/x-ndjson), FHIR NDJSON (application/fhir+ndjson), a FHIR Bundle (application/fhir+json)';

/** The beginning of a JSON file. */
interface JsonBeginning {
  /** The first object, or those of its fields that were found. */
  fields: JsonObject;
  /** Each object is on one line. */
  isLines: boolean;
}

/** @returns undefined if a text is not JSON */
function jsonBeginning(text: string): JsonBeginning | undefined {
  const trimmed = text.trimStart();
  if (!trimmed.startsWith('{')) return undefined;
  const [line = ''] = trimmed.split('\n', 1);
  const first = parseObject(line);
  if (first) return { fields: first, isLines: first.resourceType !== 'Bundle' };
  // A long line, or an object on several lines. A Bundle may begin with its entries.
  const found = [...trimmed.matchAll(/"(resourceType|kind|providers)"\s*:\s*"?(\w*)/g)].reverse();
  const fields = Object.fromEntries(found.map(([, name = '', value]) => [name, value]));
  const isBundle = fields.resourceType === 'Bundle' || /"entry"\s*:\s*\[/.test(trimmed);
  return { fields: { ...fields, ...(isBundle && { resourceType: 'Bundle' }) }, isLines: !isBundle && line === trimmed };
}

function formatOf(file: FileFacts, text: string, json: JsonBeginning | undefined): ImportFormat {
  const extension = path.extname(file.name).toLowerCase();
  const declaredBy = (name: string) => DECLARED.find(({ names }) => names.includes(name))?.format;
  const declared = declaredBy(file.mediaType) ?? declaredBy(extension);
  const isResource = file.wanted === 'fhir' || json?.fields.resourceType !== undefined;
  if (declared === 'ndjson' || (!declared && json?.isLines)) return isResource ? 'fhir-ndjson' : 'ndjson';
  if (declared) return declared;
  if (extension === '.json' || json?.fields.resourceType !== undefined) return 'fhir-json';
  // Binary files contain NUL, and HTML or XML begins with <.
  if (!json && !/\0/.test(text) && /^[^<[][^\r\n]*[,;\t|]/.test(text.trimStart())) return 'csv';
  throw refusal('unknown-format', `The format of the file is not known. Known formats: ${KNOWN_FORMATS}.`, file);
}

/** The kinds of people that the content of a file suggests: none, one or, if they are ambiguous, two. */
function kindsOfContent(format: ImportFormat, text: string, json: JsonBeginning | undefined): FileKind[] {
  if (format === 'csv') return kindsOfColumns(detectLayout(text, 'clients').header);
  if (format !== 'ndjson') return ['fhir'];
  if (json?.fields.kind !== undefined) return ['both'];
  return json?.fields.providers === undefined ? [] : ['clients'];
}

function kindOfName(name: string): 'providers' | 'clients' | undefined {
  const isProviders = /provider|practitioner|clinician|therapist/i.test(name);
  const isClients = /client|patient/i.test(name);
  // A name may contain both words: `patients_by_provider.csv`.
  return isProviders === isClients ? undefined : isProviders ? 'providers' : 'clients';
}
