import type { ImportResponse } from '../../imports/report/import-view.js';
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
    ignoredColumns: [],
    guards: [],
    needAttention: (counts.rejected ?? 0) + (counts.failed ?? 0) + (counts.needsReview ?? 0),
    error: null,
    createdAt: '2026-11-21T08:00:00.000Z',
    finishedAt: '2026-11-21T08:00:15.000Z',
    ...more,
  } as ImportResponse;
}

test('only outcomes that occurred are listed', () => {
  const text = importSummary(view({ total: 40, created: 38, linked: 2 }));
  expect(text.split('\n')).toEqual([
    'Import i1 completed in 15 s: 40 rows, 76 calls to the platform',
    '      38  created on the platform',
    '       2  found on the platform and linked',
  ]);
});

test('columns from which nothing was read are named', () => {
  const ignoredColumns = [{ file: 'clients.csv', columns: ['emial', 'Room'] }];
  const text = importSummary(view({ total: 1, created: 1 }, { ignoredColumns }));
  expect(text).toContain('Nothing was read from the columns emial, Room of clients.csv.');
});

test('rows that need somebody come with the command that shows them', () => {
  const text = importSummary(view({ total: 3, rejected: 1, needsReview: 1, failed: 1 }));
  expect(text).toContain('npx notebridge import-rows i1 --rejected-csv rejected.csv');
  expect(text).toContain('npx notebridge import-rows i1 --outcome needsReview');
  expect(text).toContain('npx notebridge retry i1');
});

test('a plan says what it would need and how to do it', () => {
  const calls = { made: 0, remaining: { min: 3, max: 4 } };
  const planned = { 'create-or-link': 2, unchanged: 5 };
  const text = importSummary(view({ total: 7 }, { state: 'planned', planned, calls, etaSeconds: 1, finishedAt: null }));
  expect(text).toContain('3 to 4 calls, about 1 s');
  expect(text).toContain('npx notebridge apply i1');
});

const NOTHING_TO_DO: ImportResponse['planned'][] = [{}, { unchanged: 5 }, { rejected: 4 }];

test.each(NOTHING_TO_DO)('a plan of %j has nothing that could be applied', (planned) => {
  const text = importSummary(view({ total: 5 }, { state: 'planned', planned, etaSeconds: 0, finishedAt: null }));
  expect(text).toContain('there is nothing to do');
  expect(text).not.toContain('apply');
  expect(text).not.toContain('about 0 s');
});

test('a failed import says why', () => {
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
] as const)('%j %j ends the command with %d', (counts, more, code) =>
  expect(exitCodeOf(view(counts, more))).toBe(code),
);

test('a deletion that failed is told and fails the command, and so does what is paused or was skipped', () => {
  const failed = view({ total: 1, unchanged: 1 }, { deletes: { failed: 2 }, needAttention: 2 });
  expect(importSummary(failed)).toContain('2  whose deletion failed');
  expect(importSummary(failed)).toContain('npx notebridge retry i1');
  expect(exitCodeOf(failed)).toBe(2);
  expect(exitCodeOf(view({ total: 1, pending: 1 }, { state: 'paused' }))).toBe(2);
  expect(exitCodeOf(view({ total: 1, skipped: 1 }))).toBe(2);
  expect(exitCodeOf(view({ total: 1, unchanged: 1 }, { deletes: { skipped: 1 } }))).toBe(2);
});

test('a plan that a threshold holds back says which, what it counts, and how to go over it', () => {
  const guards = [{ name: 'deletes', count: 7, of: 20, threshold: { percent: 10, people: 5 }, exceeded: true }];
  const held = view({ total: 13 }, { state: 'planned', planned: { delete: 7 }, guards } as Partial<ImportResponse>);
  expect(importSummary(held)).toContain('threshold deletes: 7 of 20 people would be deleted; more than 10% and 5');
  expect(importSummary(held)).toContain('npx notebridge apply i1 --override deletes');
  expect(exitCodeOf(held)).toBe(2);
});
