/** Names of columns that mark people who are gone by a text, by a yes, or by a no. */
const NAMES_OF_YES =
  'inactive isinactive deleted isdeleted archived isarchived deceased isdeceased deceaseddate dateofdeath'.split(' ');
const NAMES_OF_NO = ['active', 'isactive'];
export const STATUS_NAMES = ['status', 'accountstatus', ...NAMES_OF_YES, ...NAMES_OF_NO];

/** Texts in a status column that mean that a person is gone. */
const WORDS =
  'inactive|not active|deceased|dead|deleted|archived|suspended|terminated|closed|discharged|former|duplicate|merged';
const GONE = WORDS.split('|');
const YES = ['yes', 'y', 'true', '1', 'x'];
const NO = ['no', 'n', 'false', '0'];

/** A day in digits or with the name of its month; not `0000-00-00`, which some databases export for no date. */
const DATE = /^(?=.*[1-9])(?:\d{8}|\d{1,4}[-/. ]+[\p{L}\d]{1,9}[-/., ]+\d{1,4})/u;

/** A column that marks people who are gone. */
export interface StatusColumn {
  place: number;
  /** As shown to the user. */
  title: string;
  /** One of `STATUS_NAMES`. */
  name: string;
}

/** The flags in a column that mean that a person is gone; none if only `GONE` does. */
function flagsOf({ name }: StatusColumn): string[] {
  return NAMES_OF_NO.includes(name) ? NO : NAMES_OF_YES.includes(name) ? YES : [];
}

const hasDates = ({ name }: StatusColumn) => /deceased|death/.test(name);

/** True if the text of a status column means that the person is gone. */
export function isGone(column: StatusColumn, cell: string): boolean {
  const text = cell.trim().toLowerCase();
  const words = text.replace(/[\s_-]+/g, ' ');
  return GONE.includes(words) || flagsOf(column).includes(words) || (hasDates(column) && DATE.test(text));
}

/** The texts that `isGone` recognizes in some columns, for the user. */
export function goneWords(columns: readonly StatusColumn[]): string[] {
  const flags = columns.flatMap((column) => {
    const texts = [...flagsOf(column), ...(hasDates(column) ? ['a date'] : [])];
    return texts.length === 0 ? [] : [`${texts.join('/')} in ${column.title}`];
  });
  return columns.length === 0 ? [] : [...GONE, ...flags];
}
