import type { ImportRecord } from '../model/imports.repository.js';
import type { ImportTotals } from '../model/totals.js';
import { type Pace, showImport } from './import-view.js';

const totals: ImportTotals = {
  counts: { created: 3, pending: 40, rejected: 2, failed: 1 },
  deletes: { deleted: 4, needsReview: 1 },
  planned: { 'create-or-link': 43, rejected: 2, delete: 5 },
  reasons: [],
  ...{ corrected: 0, repeatedIds: 0, unclearRows: 0, callsMade: 6 },
  remaining: { min: 40, max: 80 },
};
const record = { state: 'running', guards: null, errorCode: null } as ImportRecord;
const shown = (pace: Pace) => showImport(record, totals, pace, [], null);

describe('an import', () => {
  it('has counts that add up to its total without deletions, which are counted separately', () => {
    const { counts, needAttention } = shown({ callsPerSecond: 5, others: 0, etaUnknown: null });
    expect(counts).toEqual({
      ...{ total: 46, pending: 40, created: 3, linked: 0, updated: 0, unchanged: 0, skipped: 0 },
      ...{ rejected: 2, failed: 1, needsReview: 0, deleted: 4 },
    });
    expect(needAttention).toBe(2 + 1 + 1);
  });

  it('ends after the fewest to the most remaining calls at the limit of calls', () => {
    expect(shown({ callsPerSecond: 3, others: 0, etaUnknown: null })).toMatchObject({
      etaMinSeconds: 14,
      etaSeconds: 27,
    });
  });

  it('has no estimate, but a reason, while no call is made', () => {
    const view = shown({ callsPerSecond: null, others: 0, etaUnknown: 'no-worker' });
    expect(view).toMatchObject({ etaMinSeconds: null, etaSeconds: null, etaUnknown: 'no-worker' });
  });
});
