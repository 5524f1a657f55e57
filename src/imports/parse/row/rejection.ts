import type { PersonKind } from '../../../people/rules/person.js';
import { PROVIDERS_MAX } from '../../../people/rules/person-field-rules.js';
import type { CodeOf } from '../../../words/words.js';

/** Facts that a hint may name in addition to the rule. Except external ids, none is copied from a cell. */
interface Detail {
  /** As the import spells it. */
  field: string;
  /** In characters. */
  limit: number;
  /** In words. */
  expected: string;
  found: number;
  kind?: PersonKind;
  /** `duplicate-id`: the line of the first row with this id. */
  line?: number;
  /** `no-provider`: ignored columns that may name providers. */
  columns?: readonly string[];
  /** `missing-field`: the row shows only a part of a person who is not known. */
  isUnknown?: boolean;
  /** `unknown-provider`: the cell contains a comma or a semicolon. */
  hasSeparator?: boolean;
  /** `unknown-provider`: the row of this provider was rejected. */
  isProviderRejected?: boolean;
  /** `merge-needed`: the external ids of the chart, and of the one that stands for it, if the link names it. */
  externalId?: string;
  survivor?: string;
}

export const HINTS = {
  'missing-field': ({ field, isUnknown }) => {
    if (isUnknown) return `This person is unknown, so the row needs ${field}, too. Add it, or correct externalId.`;
    return field === 'providers' ? 'providers contains an empty id. Remove it.' : `${field} is empty. Fill it in.`;
  },
  'bad-email': ({ kind }) =>
    kind === 'client'
      ? 'email is not an email address. A client needs no email: clear the cell, or correct the address.'
      : 'email is not an email address. Write one address, such as name@example.org.',
  'bad-character': ({ field }) => `${field} contains a control character or broken Unicode. Type it again.`,
  'line-break': ({ field }) => `${field} contains a line break. Write it on one line.`,
  'invisible-character': ({ field }) =>
    `${field} contains an invisible character, such as a zero-width space. Type it again.`,
  'bad-id': ({ field }) => `${field} begins or ends with a space. Remove it.`,
  'scientific-id': ({ field }) =>
    `${field} is in scientific notation, such as 1.23E+15, so its last digits are lost. Format the column as text in the spreadsheet and export the file again.`,
  'bad-platform-user-id': ({ field }) =>
    `${field} is not a user id of the platform. Copy the UUID of the existing user, or clear the cell.`,
  'too-long': ({ field, limit }) => `${field} is longer than ${limit} characters. Shorten it.`,
  'too-many-providers': () => `providers names more than ${PROVIDERS_MAX} providers. Shorten the list.`,
  'wrong-type': ({ field, expected }) => `${field} must be ${expected}.`,
  'unknown-field': ({ field, expected }) => `${field || 'A field'} is not a known field. Use only ${expected}.`,
  'bad-json': () => 'This line is not a JSON object. Write one object per line.',
  'cell-count': ({ found, expected }) =>
    `The row has ${found} cells, but the header has ${expected}. Put cells that contain the delimiter in quotes.`,
  'bad-quote': () =>
    'A quote is not closed, or text follows the closing quote. Close it, and double quotes inside a quoted cell ("").',
  'row-too-large': ({ limit }) => `The row is longer than ${limit} characters. Shorten it.`,
  'cell-too-large': ({ field, limit }) => `${field || 'A cell'} is longer than ${limit} characters. Shorten it.`,
  erased: () =>
    'The row contained the id of a person who has been deleted since, so its content was erased. If it was about another person, import it again.',
  'not-corrected': () => 'Clear the code cell once the row is right.',
  'not-a-person': () => 'This is not a FHIR resource. Each must be an object with a resourceType, such as Patient.',
  'unsplit-name': () =>
    'The name is only a text, so first and last name cannot be told apart. Fill in given and family (firstName and lastName).',
  'merged-record': () =>
    'In the EHR, this chart was merged into another one (Patient.link, replaced-by). Here, no client of its own has this id. Nothing needs to be done.',
  'merge-needed': ({ externalId = '', survivor }) => {
    const merge = `POST /v1/clients/${encodeURIComponent(externalId)}/merge`;
    const isHere = 'Here it is still a client of its own, with its sessions and notes.';
    return survivor === undefined
      ? `In the EHR, this chart was merged into another one, whose id the file does not give. ${isHere} Look up that id in the EHR, then merge the two: ${merge} {"into": the id}.`
      : `In the EHR, this chart was merged into ${survivor}. ${isHere} Merge the two once ${survivor} is here: ${merge} {"into": ${JSON.stringify(survivor)}}.`;
  },
  'duplicate-id': ({ line }) =>
    line === undefined
      ? 'Duplicate ID: an earlier row of the import has it. Remove one of the two rows.'
      : `Duplicate ID, first used in line ${line}. Remove one of the two rows.`,
  renamed: () => 'The person with this id was renamed. Use the new id.',
  merged: () => 'The client with this id was merged into another one. Use the id of that client, or remove the row.',
  'no-provider': ({ columns = [] }) => {
    const [ignored, are] = columns.length === 1 ? ['column', 'is'] : ['columns', 'are'];
    return columns.length === 0
      ? 'The client has no provider. Fill in providers, or choose a default provider for the import.'
      : `The client has no provider. The file has the ${ignored} ${columns.join(', ')}, which ${are} ignored. Map one of them to providers, or choose a default provider for the import.`;
  },
  'unknown-provider': ({ isProviderRejected, hasSeparator }) =>
    isProviderRejected
      ? 'The row of this provider was rejected, too. Correct it first.'
      : `No provider has this id. providers must contain the external ids of providers, not their names${hasSeparator ? '; separate several ids with | (a bar)' : ''}. Correct the id, or import the provider first.`,
  // Plan
  'changed-since-read': () => 'The EHR changed this person after the file was read. The later change counts.',
  'changed-since-plan': () =>
    'Another import changed this person after this plan was made, which planned no change. Import the row again.',
  inactive: () =>
    'The file marks this person as inactive or deceased. Such people are never created and stay as they are.',
  'already-deleted': () => 'The file says that this person was deleted, and nobody with this id is here.',
  repeated: () => 'An equal row of the import counts for this person.',
  'older-version': () => 'A newer version of this record is in the import.',
  'linked-otherwise': () =>
    'This person is linked to another platform user. Resolve the person with link to change that, or clear platformUserId.',
  'platform-user-taken': () =>
    'This platform user belongs to another person, or to an earlier row. Correct platformUserId.',
  'call-under-way': () =>
    'A call for this person may still create another platform user. Import the row again once the person is settled.',
  'provider-in-use': () => 'Clients still name this provider. Give them other providers, then delete it.',
  'provider-gone': () =>
    'A provider of this client was deleted, or its import was not applied, after this file was read. Import the provider if it is missing, then the client again.',
  'not-pushable': () => 'The change is stored here. The platform has no operation that changes a name or an email.',
  'apply-failed': () =>
    'The row could not be applied because of a fault of the program: see the log of the worker. Then retry the import.',
  cancelled: () =>
    'The import was cancelled, or failed, before anything was sent for this row. The person is as it was before.',
  // FHIR
  'no-id': () =>
    'The resource has no id. Add one, or name the identifier systems that give the external id (idSystem).',
  'no-identifier': () =>
    'The resource has no current identifier of a system in idSystem. Add one, or correct idSystem.',
  'nested-bundle': () => 'The Bundle is nested too deeply. Send it as a file.',
} satisfies Record<RowCode, (detail: Detail) => string>;

type RowCode = CodeOf<'rowCode'>;

/** A fault of one row: its field, and how to correct it. Contains no personal data. */
export interface Rejection {
  code: RowCode;
  field?: string;
  hint: string;
}

/** Makes a rejection with its hint. */
export function rejection(code: RowCode, detail: Partial<Detail> = {}): Rejection {
  const hint = HINTS[code]({ field: '', limit: 0, expected: '', found: 0, ...detail });
  return detail.field ? { code, field: detail.field, hint } : { code, hint };
}

/**
 * Thrown when the file as a whole is refused. Rows that were read before do not count. A single bad row never causes it.
 * The message contains no cell of the file, but may contain names of columns.
 */
export class UnreadableFile extends Error {
  /**
   * @param code stable, for programs, such as `not-utf8`
   * @param line the physical line, from 1, that shows the fault
   * @param hint one or two sentences: what is wrong and how to correct it
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
