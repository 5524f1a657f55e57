import { PROVIDERS_MAX } from '../../../people/model/person-field-rules.js';

/** What a hint may say beside the rule itself. None of it is taken from a cell. */
interface Detail {
  field: string;
  limit: number;
  expected: string;
  found: number;
}

export const HINTS = {
  'missing-field': ({ field }) => `${field} is empty: fill it in.`,
  'bad-email': () => 'email is not an address: write it as name@example.org, without spaces.',
  'bad-character': ({ field }) => `${field} holds a control character or broken Unicode: type it anew.`,
  'invisible-character': ({ field }) =>
    `${field} holds an invisible character, such as a zero-width space: type it anew.`,
  'bad-id': ({ field }) => `${field} begins or ends with a space: remove it.`,
  'too-long': ({ field, limit }) => `${field} is longer than ${limit} characters: shorten it.`,
  'too-many-providers': () => `providers names more than ${PROVIDERS_MAX} providers: shorten the list.`,
  'wrong-type': ({ field, expected }) => `${field} must be ${expected}.`,
  'unknown-field': ({ field, expected }) => `${field || 'A field'} is not known here: use only ${expected}.`,
  'bad-json': () => 'This is not one JSON object: write each record as an object, on one line in a file of JSON lines.',
  'cell-count': ({ found, expected }) =>
    `The row has ${found} cells, the header ${expected}: put cells that hold the delimiter in quotes.`,
  'bad-quote': () =>
    'A quote is opened and not properly closed: close it, or double the quotes inside a quoted cell ("").',
  'row-too-large': ({ limit }) => `The row is longer than ${limit} characters: shorten it.`,
  'cell-too-large': ({ field, limit }) => `${field || 'A cell'} is longer than ${limit} characters: shorten it.`,
  'not-a-person': () =>
    'This is no FHIR resource that can stand here: each must be an object with a resourceType, such as Patient.',
  'unsplit-name': () =>
    'The name has only a text in which first and last name can not be told apart: fill in given and family (firstName and lastName).',
  'merged-record': () =>
    'This record was merged into another one (Patient.link, replaced-by), which stands for the person: nothing is to be done.',
  'duplicate-id': () => 'This externalId stood in an earlier row of the import, which counts: remove one of the two.',
  renamed: () => 'A person with this id was renamed: use the new id.',
  merged: () => 'The client with this id was merged into another one: use the id of that one, or remove the row.',
  'no-provider': () => 'No provider is named: fill in providers, or give the import a default provider.',
  'unknown-provider': () => 'No provider with this externalId is known: import the provider, or correct providers.',
  'unresolved-provider': ({ expected }) =>
    `The provider is referred to (${expected}), and the reference leads to nobody who is known: import practitioners and roles first or together, or give the import a default provider.`,
} satisfies Record<string, (detail: Detail) => string>;

/** What is wrong with one row, where, and how to mend it; never holds personal data. */
export interface Rejection {
  code: keyof typeof HINTS;
  field?: string;
  hint: string;
}

/**
 * A rejection with its hint.
 * @param detail `field` as the import spells it; `limit` in characters; `expected` in words; `found` as a count
 */
export function rejection(code: keyof typeof HINTS, detail: Partial<Detail> = {}): Rejection {
  const hint = HINTS[code]({ field: '', limit: 0, expected: '', found: 0, ...detail });
  return detail.field ? { code, field: detail.field, hint } : { code, hint };
}

/**
 * Why a row that was rejected for `code` and came back unchanged is rejected again; undefined where it may be right now,
 * as it was decided by who was known when the import was planned.
 */
export function unchangedRejection(code: string): Rejection | undefined {
  if (!isCode(code) || ['merged', 'no-provider', 'renamed', 'unknown-provider', 'unresolved-provider'].includes(code))
    return undefined;
  return { code, hint: 'This row was rejected before and has come back unchanged: correct it, or remove it.' };
}

function isCode(code: string): code is keyof typeof HINTS {
  return Object.hasOwn(HINTS, code);
}

/**
 * The file as a whole is refused: rows that were read before count for nothing. A single bad row is never a reason.
 * The message holds no cell of the file; names of header columns may appear in it.
 */
export class UnreadableFile extends Error {
  /**
   * @param code stable, for programs, such as `not-utf8`
   * @param line the physical line, from 1, that shows the fault
   * @param hint one sentence or two: what is wrong and how to mend it
   */
  constructor(
    readonly code: string,
    readonly line: number,
    readonly hint: string,
  ) {
    super(`The file cannot be read (line ${line}): ${hint}`);
    this.name = 'UnreadableFile';
  }
}
