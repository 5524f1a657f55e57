import type { ImportFileResponse, ImportResponse } from '../../imports/api/import-view.js';
import type { Guard } from '../../imports/model/import-guards.js';
import { exitCodeOf, importSummary } from './import-summary.js';

const NONE = {
  total: 0,
  pending: 0,
  created: 0,
  linked: 0,
  updated: 0,
  unchanged: 0,
  skipped: 0,
  rejected: 0,
  failed: 0,
  needsReview: 0,
  deleted: 0,
};

function view(counts: Partial<ImportResponse['counts']>, more: Partial<ImportResponse> = {}): ImportResponse {
  return {
    id: 'i1',
    state: 'completed',
    kind: 'clients',
    mode: 'upsert',
    dryRun: false,
    counts: { ...NONE, ...counts },
    planned: {},
    deletes: {},
    calls: { made: 76, remaining: { min: 0, max: 0 } },
    etaSeconds: null,
    etaMinSeconds: null,
    etaUnknown: null,
    correctionOf: null,
    ...{ corrected: 0, repeatedIds: 0, lostProviders: 0, unclearRows: 0 },
    reasons: [],
    guards: [],
    files: [],
    offeredColumns: null,
    needAttention: (counts.rejected ?? 0) + (counts.failed ?? 0) + (counts.needsReview ?? 0),
    error: null,
    createdAt: '2026-11-21T08:00:00.000Z',
    finishedAt: '2026-11-21T08:00:15.000Z',
    ...more,
  } as ImportResponse;
}

test('lists only outcomes that occurred', () => {
  const text = importSummary(view({ total: 40, created: 38, linked: 2 }));
  expect(text.split('\n')).toEqual([
    'Import i1 completed in 15 s: 40 rows, 76 calls to the platform',
    '      38  created',
    '       2  linked',
  ]);
});

const CLIENTS: ImportFileResponse = {
  name: 'clients.csv',
  kind: 'clients',
  format: 'csv',
  rows: 40,
  emptyIds: 2,
  mapping: {
    columns: [
      { name: 'PAT_ID', field: 'externalId', example: 'XX-99' },
      { name: 'First\nname', field: 'firstName', example: 'Xxxx' },
      { name: 'lastName', field: 'lastName', example: 'Xxx' },
      { name: 'Active', field: 'status', example: 'xxx' },
      { name: 'Room', field: null, example: '' },
    ],
    idReason: 'Its values are unique.',
    question: null,
    goneWords: ['no', 'left'],
  },
};

test("prints a file's columns, ignored columns, the reason for the id column, and empty ids", () => {
  const ndjson = {
    ...CLIENTS,
    name: 'providers.ndjson',
    kind: 'providers',
    rows: 1,
    emptyIds: 0,
    mapping: null,
  } as const;
  const text = importSummary(view({ total: 41, created: 41 }, { files: [ndjson, CLIENTS], repeatedIds: 1 }));
  expect(text.split('\n').slice(2)).toEqual([
    '  1 id occurs in several rows.',
    '  providers.ndjson (providers, 1 row)',
    '  clients.csv (clients, 40 rows): PAT_ID -> externalId, First name -> firstName, lastName, Active -> status (gone: no, left); ignored: Room',
    '    Id: Its values are unique.',
    '    2 rows have no id.',
  ]);
});

describe('an import whose columns are not clear', () => {
  const question = { fields: ['externalId'], detail: 'PAT_ID and MRN may both be the id.' };
  const columns = [
    { name: "Pat's ID", field: null, example: 'XX-99' },
    { name: 'lastName', field: 'lastName', example: 'Xxx' },
  ];
  const asking = { ...CLIENTS, mapping: { columns, idReason: null, question, goneWords: [] } } as ImportFileResponse;
  const waiting = (more: Partial<ImportResponse>) => view({}, { state: 'needs-mapping', files: [asking], ...more });

  test('shows the question, every column with its example, and the command to continue', () => {
    expect(importSummary(waiting({})).split('\n')).toEqual([
      'Import i1 needs columns',
      '  clients.csv (clients): PAT_ID and MRN may both be the id.',
      '    column    example  read as',
      "    Pat's ID  XX-99    –",
      '    lastName  Xxx      lastName',
      'To choose the columns: npx notebridge map i1 --column externalId=COLUMN',
    ]);
    expect(exitCodeOf(waiting({}))).toBe(2);
  });

  test('offers the columns of the last import that the file has', () => {
    const offered = importSummary(waiting({ offeredColumns: { externalId: "Pat's ID", email: 'Mail' } }));
    expect(offered).toContain("Columns of the last import: externalId=Pat's ID, email=Mail");
    expect(offered).toContain(`npx notebridge map i1 --column 'externalId=Pat'\\''s ID'`);
    expect(importSummary(waiting({ offeredColumns: { externalId: 'MRN' } }))).toContain('externalId=COLUMN');
  });

  test('several files: requests the columns of each kind', () => {
    const files = [{ ...asking, name: 'providers.csv', kind: 'providers' as const }, asking];
    expect(importSummary(waiting({ files }))).toContain(
      'map i1 --column providers.externalId=COLUMN --column clients.externalId=COLUMN',
    );
  });
});

test('groups reasons by code, with the command that shows their rows', () => {
  const reasons: ImportResponse['reasons'] = [
    { outcome: 'rejected', code: 'bad-email', rows: 12 },
    { outcome: 'needsReview', code: 'email-taken', rows: 1 },
  ];
  const text = importSummary(view({ total: 13, rejected: 12, needsReview: 1 }, { reasons }));
  expect(text).toMatch(
    / {2}By reason:\n {6}12 {2}rejected: invalid email \(bad-email\)\n {7}1 {2}to review: email used twice \(email-taken\)\n/,
  );
  expect(text).toContain('npx notebridge import-rows i1 --code bad-email');
});

test('reports corrections and rows without a person', () => {
  const more = { corrected: 2, correctionOf: 'i0', unclearRows: 3, planned: { 'needs-review': 1 } };
  const text = importSummary(view({ total: 3 }, { state: 'planned', ...more }));
  expect(text).toContain('corrects rejected rows of import i0');
  expect(text).toContain('2 rows were corrected');
  expect(text).toContain('3 rejected rows name no person, so no one is deleted');
  expect(text).toContain('npx notebridge import-rows i1 --planned needs-review');
});

test('prints the command that shows the rows that need attention', () => {
  const text = importSummary(view({ total: 3, rejected: 1, needsReview: 1, failed: 1 }));
  expect(text).toContain('npx notebridge import-rows i1 --rejected-csv rejected.csv');
  expect(text).toContain('npx notebridge import-rows i1 --outcome needsReview');
  expect(text).toContain('npx notebridge retry i1');
});

test('prints the calls and the time that a plan needs, and how to apply it', () => {
  const calls = { made: 0, remaining: { min: 3, max: 4 } };
  const planned = { 'create-or-link': 2, unchanged: 5 };
  const text = importSummary(view({ total: 7 }, { state: 'planned', planned, calls, etaMinSeconds: 1, etaSeconds: 2 }));
  expect(text).toContain('3 to 4 calls, about 1 s to 2 s');
  expect(text).toContain('npx notebridge apply i1');
});

const NOTHING_TO_DO: ImportResponse['planned'][] = [{}, { unchanged: 5 }, { rejected: 4 }];

test.each(NOTHING_TO_DO)('a plan of %j: there is nothing to do', (planned) => {
  const text = importSummary(view({ total: 5 }, { state: 'planned', planned, etaSeconds: 0, finishedAt: null }));
  expect(text).toContain('there is nothing to do');
  expect(text).not.toContain('apply');
  expect(text).not.toContain('about 0 s');
});

test('prints why an import failed', () => {
  const error = { code: 'unreadable-file', message: 'clients.csv, line 3: it ends in the middle.' };
  expect(importSummary(view({}, { state: 'failed', error }))).toContain(error.message);
});

test.each([
  [{ created: 3 }, {}, 0],
  [{ created: 3, rejected: 1 }, {}, 2],
  [{ needsReview: 1 }, {}, 2],
  [{ failed: 1 }, {}, 2],
  [{}, { state: 'failed' }, 1],
  [{ created: 3 }, { state: 'cancelled' }, 1],
] as const)('%j %j: exit code %d', (counts, more, code) => expect(exitCodeOf(view(counts, more))).toBe(code));

test('a failed deletion, a pause and skipped rows: exit code 2', () => {
  const failed = view({ total: 1, unchanged: 1 }, { deletes: { failed: 2 }, needAttention: 2 });
  expect(importSummary(failed)).toContain('2  failed (deletion)');
  expect(importSummary(failed)).toContain('npx notebridge retry i1');
  expect(exitCodeOf(failed)).toBe(2);
  expect(exitCodeOf(view({ total: 1, pending: 1 }, { state: 'paused' }))).toBe(2);
  expect(exitCodeOf(view({ total: 1, skipped: 1 }))).toBe(2);
  expect(exitCodeOf(view({ total: 1, unchanged: 1 }, { deletes: { skipped: 1 } }))).toBe(2);
});

function held(guard: Pick<Guard, 'name'> & Partial<Guard>): ImportResponse {
  const guards = [{ count: 7, of: 20, threshold: null, exceeded: true, ...guard }];
  return view({ total: 13 }, { state: 'planned', planned: { delete: 7 }, guards });
}

test.each([
  [
    { name: 'deletes', threshold: { percent: 10, people: 5 } },
    '7 of 20 people would be deleted; more than 10% and 5 need',
  ],
  [{ name: 'deletes', threshold: { percent: 50, people: 5 } }, '7 of 20 people would be deleted.'],
  [{ name: 'providerRemovals' }, '7 of 20 clients would lose a provider.'],
  [
    { name: 'idColumn' },
    '7 of 20 people have ids from another column than in the last import. If the id column is wrong, cancel',
  ],
  [
    { name: 'looksDoubled' },
    '7 of 20 people to create exist under another id, by name or email. If the id column is wrong, cancel',
  ],
] as const)('prints the guard %j with its count and the command that confirms it', (guard, sentence) => {
  expect(importSummary(held(guard))).toContain(`Needs confirmation (${guard.name}): ${sentence}`);
  expect(importSummary(held(guard))).toContain(`npx notebridge apply i1 --override ${guard.name}`);
  expect(exitCodeOf(held(guard))).toBe(2);
});

test('reports a missing worker until the import is completed', () => {
  const idle = view({ total: 1, pending: 1 }, { state: 'paused', etaUnknown: 'no-worker' });
  expect(importSummary(idle)).toContain('Fault: no worker process is running');
  expect(importSummary({ ...idle, state: 'completed' })).not.toContain('Fault');
  expect(exitCodeOf(view({ total: 1 }, { state: 'planned', etaUnknown: 'no-worker' }))).toBe(2);
});
