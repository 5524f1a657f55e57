import { labels, vocabulary } from './word.js';

export const IMPORT_STATES = labels({
  staging: 'Reading files',
  'needs-mapping': 'Needs columns',
  planned: 'Planned',
  running: 'Running',
  paused: 'Paused',
  completed: 'Completed',
  cancelled: 'Cancelled',
  failed: 'Failed',
});

/** Planned outcomes of rows, most important first. Only the lookup on the platform decides between create and link. */
export const PLANNED_OUTCOMES = labels({
  'create-or-link': 'To create or link',
  'provider-change': 'To update',
  delete: 'To delete',
  'attribute-change': 'To change only in notebridge',
  unchanged: 'Unchanged',
  'needs-review': 'To review',
  rejected: 'Rejected',
});

/** The result of a row, in the same order. Every row has exactly one at any time. */
export const ROW_OUTCOMES = labels({
  pending: 'Pending',
  created: 'Created',
  linked: 'Linked',
  updated: 'Updated',
  deleted: 'Deleted',
  unchanged: 'Unchanged',
  skipped: 'Skipped',
  needsReview: 'To review',
  failed: 'Failed',
  rejected: 'Rejected',
});

/** Reasons of rows; each row has its own hint (`imports/parse/row/rejection.ts`). */
export const ROW_CODES = labels({
  'missing-field': 'Missing field',
  'bad-email': 'Invalid email',
  'bad-character': 'Invalid character',
  'line-break': 'Line break in a cell',
  'invisible-character': 'Invisible character',
  'bad-id': 'Id begins or ends with a space',
  'scientific-id': 'Id in scientific notation',
  'bad-platform-user-id': 'Invalid platform user id',
  'too-long': 'Too long',
  'too-many-providers': 'Too many providers',
  'wrong-type': 'Wrong type',
  'unknown-field': 'Unknown field',
  'bad-json': 'Invalid JSON',
  'cell-count': 'Wrong number of cells',
  'bad-quote': 'Misplaced quote',
  'row-too-large': 'Row too large',
  'cell-too-large': 'Cell too large',
  erased: 'Person deleted since',
  'not-corrected': 'Not corrected',
  'not-a-person': 'Not a FHIR resource',
  'unsplit-name': 'First and last name not separated',
  'merged-record': 'Chart merged in the EHR',
  'merge-needed': 'Chart to be merged',
  'duplicate-id': 'Duplicate id',
  renamed: 'Person renamed',
  merged: 'Client merged',
  'no-provider': 'No provider',
  'unknown-provider': 'Unknown provider',
  'changed-since-read': 'Changed since the file was read',
  'changed-since-plan': 'Changed since the plan',
  inactive: 'Inactive or deceased',
  'already-deleted': 'Already deleted',
  repeated: 'Repeated row',
  'older-version': 'Older version',
  'linked-otherwise': 'Linked to another platform user',
  'platform-user-taken': 'Platform user linked twice',
  'call-under-way': 'Call in flight',
  'provider-in-use': 'Provider in use',
  'provider-gone': 'Provider deleted',
  'not-pushable': 'Changed only in notebridge',
  'apply-failed': 'Could not be applied',
  cancelled: 'Import cancelled or failed',
  'no-id': 'No id',
  'no-identifier': 'No identifier',
  'nested-bundle': 'Bundle nested too deeply',
});

/** Reasons for confirmation before a plan is applied; each label continues "3 of 10". */
export const IMPORT_GUARDS = vocabulary({
  deletes: {
    label: 'People would be deleted',
    hint: 'Their platform users would be deleted, too. Check that the files list everyone.',
  },
  providerRemovals: {
    label: 'Clients would lose a provider',
    hint: 'These providers would no longer see them. Check that the files name all providers.',
  },
  idColumn: {
    label: 'People have ids from another column than in the last import',
    hint: 'They might be created again under the new ids. Check the columns of the files.',
  },
  looksDoubled: {
    label: 'People to create exist under another id, by name or email',
    hint: 'They might get a second account. Check the columns of the files.',
  },
});

/** Why the end of an import cannot be estimated. Those with a hint are faults. */
export const ETA_UNKNOWN = vocabulary({
  paused: { label: 'The import is paused' },
  'rate-limited': { label: 'The platform asked for fewer calls' },
  'no-worker': {
    label: 'No worker process is running, so nothing is sent',
    hint: 'Start a process whose ROLES contain worker.',
  },
  'not-configured': {
    label: 'PLATFORM_CONTRACT has no apiKey.header, so nothing is sent',
    hint: 'Set it and restart.',
  },
  'platform-unauthorized': {
    label: 'The platform rejects PLATFORM_API_KEY, so nothing is sent',
    hint: 'Correct the key and restart.',
  },
  'platform-address': {
    label: 'PLATFORM_BASE_URL does not lead to the platform, so nothing is sent',
    hint: 'Correct the URL and restart.',
  },
  'platform-fault': {
    label: 'The platform gives no readable answers, so little is sent',
    hint: 'The calls are retried automatically.',
  },
  'platform-rejects': {
    label: 'The platform rejects an operation for everyone',
    hint: 'System health has the details.',
  },
});
