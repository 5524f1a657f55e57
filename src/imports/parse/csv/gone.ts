import { STATUS_NAMES } from './column-names.js';

/** Texts in a status column that mean that a person is gone. */
const WORDS =
  'inactive|not active|deceased|dead|deleted|archived|suspended|terminated|closed|discharged|former|duplicate|merged';
const GONE = new Set(WORDS.split('|'));
const YES = new Set(['yes', 'y', 'true', '1', 'x']);
const NO = new Set(['no', 'n', 'false', '0']);

/** A day in digits or with the name of its month; not `0000-00-00`, which some databases export for no date. */
const DATE = /^(?=.*[1-9])(?:\d{8}|\d{1,4}[-/. ]+[\p{L}\d]{1,9}[-/., ]+\d{1,4})/u;

/** A column that marks people who are gone. */
export interface StatusColumn {
  place: number;
  /** As shown to the user. */
  title: string;
  /** As `column-names.ts` knows it. */
  name: string;
}

const isDeath = (name: string) => /deceased|death/.test(name);

/** True if the text of a status column means that the person is gone. */
export function isGone({ name }: StatusColumn, cell: string): boolean {
  const text = cell
    .trim()
    .toLowerCase()
    .replace(/[\s_-]+/g, ' ');
  if (GONE.has(text)) return true;
  if (STATUS_NAMES.no.includes(name)) return NO.has(text);
  return STATUS_NAMES.yes.includes(name) && (YES.has(text) || (isDeath(name) && DATE.test(cell.trim())));
}

/** The texts that `isGone` recognizes in some columns, for the user. */
export function goneWords(columns: readonly StatusColumn[]): string[] {
  if (columns.length === 0) return [];
  const flags = columns.flatMap(({ name, title }) => {
    if (STATUS_NAMES.no.includes(name)) return [`${[...NO].join('/')} in ${title}`];
    if (!STATUS_NAMES.yes.includes(name)) return [];
    return [`${[...YES, ...(isDeath(name) ? ['a date'] : [])].join('/')} in ${title}`];
  });
  return [...GONE, ...flags];
}
