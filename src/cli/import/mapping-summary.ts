import type { ImportFileResponse, ImportResponse, MappingResponse } from '../../imports/api/import-view.js';
import { counted, table } from '../output/print.js';

const KINDS = { providers: 'providers', clients: 'clients', both: 'providers and clients', fhir: 'FHIR' };

/** Maximum ignored columns that are named. */
const MAX_IGNORED = 10;

/** The lines whose condition is fulfilled. */
export const applicable = (lines: [unknown, string][]): string[] =>
  lines.flatMap(([applies, line]) => (applies ? line : []));

/** A file with its mapping; while the mapping has a question, with all columns. */
export function fileLines({ name, kind, rows, emptyIds, mapping }: ImportFileResponse): string[] {
  if (mapping?.question) {
    const columns = mapping.columns.map(({ name: column, example, field }) => ({
      column: onOneLine(column),
      example: onOneLine(example),
      'read as': field,
    }));
    return [`  ${name} (${KINDS[kind]}): ${mapping.question.detail}`, table(columns).replaceAll(/^/gm, '    ')];
  }
  const empty: [unknown, string] = [emptyIds, `    ${counted(emptyIds, 'row has', 'rows have')} no id.`];
  const reason: [unknown, string] = [mapping?.idReason, `    Id: ${mapping?.idReason}`];
  const columns = mapping ? `: ${mappingText(mapping)}` : '';
  return [`  ${name} (${KINDS[kind]}, ${counted(rows, 'row')})${columns}`, ...applicable([reason, empty])];
}

function mappingText({ columns, goneWords }: MappingResponse): string {
  const names = columns.map(({ name, field }) => ({ name: onOneLine(name), field }));
  const read = names.flatMap(({ name, field }) => {
    if (field === null) return [];
    const words = field === 'status' ? ` (gone: ${goneWords.join(', ')})` : '';
    return (name === field ? name : `${name} -> ${field}`) + words;
  });
  const ignored = names.flatMap(({ name, field }) => (field === null ? name : []));
  const more = ignored.length > MAX_IGNORED ? ` and ${ignored.length - MAX_IGNORED} more` : '';
  const rest = ignored.length > 0 ? `; ignored: ${ignored.slice(0, MAX_IGNORED).join(', ')}${more}` : '';
  return read.join(', ') + rest;
}

/** A name from a file, which may contain line breaks and control characters. */
export const onOneLine = (name: string): string => name.replaceAll(/[\s\p{Cc}]+/gu, ' ');

/** Answers the questions of all files, with the columns of the last import where the file has them. */
export function mapCommand({ id, files, offeredColumns }: ImportResponse): string {
  const chosen = files.flatMap(({ kind, mapping }) =>
    (mapping?.question?.fields ?? []).map((field) => {
      const isOfKind = files.length > 1 && (kind === 'providers' || kind === 'clients');
      const key = isOfKind ? `${kind}.${field}` : field;
      const offered = offeredColumns?.[`${kind}.${field}`] ?? offeredColumns?.[field];
      const isThere = mapping?.columns.some(({ name }) => name === offered);
      return shellWord(`${key}=${isThere ? offered : 'COLUMN'}`);
    }),
  );
  return [`npx notebridge map ${id}`, ...new Set(chosen)].join(' --column ');
}

const shellWord = (text: string): string =>
  /^[\p{L}\p{N}._=-]+$/u.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
