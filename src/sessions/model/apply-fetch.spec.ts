import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { applyFailure, applyFetch, isGone, isOutdated, type Stored } from './apply-fetch.js';
import { missingNotes } from './next-lookup.js';
import type { SessionRow } from './session-row.js';
import { answer, at, DAY, fetched, MINUTE, NOW, SECOND, session } from './session-row.spec-support.js';

const fetchOf = ({ callNo: no, changes }: SessionRow, beganAt = at(-SECOND)) => ({ no, changes, at: beganAt });

function afterAnswer(row: SessionRow, answered: Partial<SessionAnswer> = {}, stored: Partial<Stored> = {}): SessionRow {
  const how = { notesChanged: false, newRevisions: 0, now: NOW, ...stored };
  return { ...row, ...applyFetch(row, fetchOf(row), answer(answered), how) };
}

describe('an answer', () => {
  const known = fetched('Processing', {
    ...{ providerUserId: 'p-1', clientUserIds: ['c-1'], everClientUserIds: ['c-0', 'c-1'] },
    ...{ noteTemplateIds: ['t-1'], partnerAppointmentId: 'a-1' },
  });

  test('is shown', () => {
    const fields = { providerUserId: 'p-2', clientUserIds: ['c-2'], noteTemplateIds: [], partnerAppointmentId: 'a-2' };
    expect(afterAnswer(known, { state: 'Done', ...fields })).toMatchObject({
      state: 'Done',
      stateFrom: 'platform',
      ...fields,
    });
  });

  test.each([undefined, null])('keeps each field that it lacks (%p)', (unknown) => {
    const lacking = { clientUserIds: unknown, noteTemplateIds: unknown, partnerAppointmentId: unknown };
    const { providerUserId, clientUserIds, everClientUserIds, noteTemplateIds, partnerAppointmentId } = known;
    const kept = { providerUserId, clientUserIds, everClientUserIds, noteTemplateIds, partnerAppointmentId };
    expect(afterAnswer(known, lacking)).toMatchObject(kept);
  });

  test('with an empty list of clients removes them, but not those that the row ever had', () => {
    expect(afterAnswer(known, { clientUserIds: [] })).toMatchObject({
      ...{ clientUserIds: [], everClientUserIds: ['c-0', 'c-1'] },
    });
  });

  test('after any others leaves all clients that the row ever had', () => {
    const lists = fc.array(fc.option(fc.array(fc.constantFrom('c-1', 'c-2', 'c-3'))), { maxLength: 8 });
    fc.assert(
      fc.property(lists, (answers) => {
        const row = answers.reduce((kept, clientUserIds) => afterAnswer(kept, { clientUserIds }), session());
        expect(new Set(row.everClientUserIds)).toEqual(new Set(answers.flatMap((clients) => clients ?? [])));
        expect(row.clientUserIds).toEqual(answers.filter((clients) => clients !== null).at(-1) ?? []);
        expect(row.everClientUserIds).toHaveLength(new Set(row.everClientUserIds).size);
      }),
      propertyRuns(),
    );
  });

  test('without an appointment shows that of the events, and never one of this service', () => {
    const row = fetched('Processing', { eventAppointmentId: 'a-3', partnerAppointmentId: null });
    expect(afterAnswer(row).partnerAppointmentId).toBe('a-3');
    expect(afterAnswer(known, { partnerAppointmentId: 'notebridge:1' }).partnerAppointmentId).toBe('a-1');
  });

  test('with a state named like one of this service leaves the state', () => {
    for (const state of ['Requested', 'Unknown', 'Rejected', 'Merged'])
      expect(afterAnswer(known, { state }).state).toBe('Processing');
    expect(afterAnswer(known, { state: 'Archived' }).state).toBe('Archived');
  });

  test('is outdated once a later call has begun', () => {
    expect(isOutdated(session({ callNo: 4 }), { no: 3, changes: 1, at: NOW })).toBe(true);
    expect(isOutdated(session({ callNo: 4 }), { no: 4, changes: 1, at: NOW })).toBe(false);
  });

  test('covers the changes before its fetch only', () => {
    const row = session({ changes: 5, fetchedChanges: 2 });
    const how = { notesChanged: false, newRevisions: 0, now: NOW };
    expect(applyFetch(row, { ...fetchOf(row), changes: 3 }, answer(), how).fetchedChanges).toBe(3);
    expect(applyFetch(row, { ...fetchOf(row), changes: 1 }, answer(), how).fetchedChanges).toBe(2);
  });

  test('ends all faults', () => {
    const faults = {
      fault: 'gone',
      failures: 3,
      retryAt: at(DAY),
      notFoundAt: at(-DAY),
      refusedAt: NOW,
      refusedStatus: 401,
    };
    expect(afterAnswer(fetched('Done', faults))).toMatchObject({
      ...{ fault: null, failures: 0, retryAt: null, notFoundAt: null, refusedAt: null, refusedStatus: null },
    });
  });

  test('raises the revision of the notes if readers see others', () => {
    expect(afterAnswer(session({ notesRevision: 2 }), {}, { notesChanged: true }).notesRevision).toBe(3);
    expect(afterAnswer(session({ notesRevision: 2 }), {}, { newRevisions: 1 }).notesRevision).toBe(2);
  });

  test('ends the wait for an update only if its fetch began when that could no longer take effect', () => {
    const until = (updateUntil: Date) => {
      const row = fetched('Done', { updateUntil });
      return {
        ...row,
        ...applyFetch(row, fetchOf(row, NOW), answer(), { notesChanged: false, newRevisions: 0, now: at(9) }),
      };
    };
    expect(until(at(1)).updateUntil).toEqual(at(1));
    expect(until(NOW).updateUntil).toBeNull();
  });
});

describe('announced notes', () => {
  const row = fetched('Processing', { notesEvents: 2 });

  test('that an answer brings are found', () => {
    const found = afterAnswer(row, {}, { newRevisions: 1 });
    expect([found.notesFound, missingNotes(found), found.rechecks]).toEqual([1, 1, 1]);
    const both = afterAnswer(found, {}, { newRevisions: 1 });
    expect([both.notesFound, missingNotes(both), both.rechecks]).toEqual([2, 0, 0]);
  });

  test('that are missing are no longer awaited after the fifth recheck', () => {
    const answers: SessionRow[] = [];
    for (let last = row; answers.length < 6; answers.push(last)) last = afterAnswer(last);
    expect(answers.map(({ rechecks }) => rechecks)).toEqual([1, 2, 3, 4, 5, 0]);
    expect(answers.map(missingNotes)).toEqual([2, 2, 2, 2, 2, 0]);
  });

  test('are not awaited after a failure, or if COMPLETED says that there are none', () => {
    expect(afterAnswer(row, { state: 'Error' }).rechecks).toBe(0);
    const completed = { eventState: 'Done', notesEvents: 0 };
    expect(afterAnswer(fetched('Done', { ...completed, aiNotesEnabled: false })).rechecks).toBe(0);
    expect(afterAnswer(fetched('Done', { ...completed, aiNotesEnabled: null })).rechecks).toBe(1);
  });

  test('are as many as the events said, of which COMPLETED is none of its own', () => {
    expect(missingNotes(fetched('Done', { notesEvents: 2, eventState: 'Done', notesFound: 2 }))).toBe(0);
    expect(missingNotes(fetched('Done', { notesEvents: 0, eventState: 'Done' }))).toBe(1);
    expect(missingNotes(fetched('Done', { notesEvents: 1, notesFound: 3 }))).toBe(0);
  });
});

describe('a session that the platform does not find', () => {
  const notFound = (of: SessionRow, now = NOW, changes = of.changes): SessionRow => ({
    ...of,
    ...applyFailure(
      of,
      { ...fetchOf(of), changes },
      {
        ...{ fault: 'gone', failures: of.failures + 1, notFoundAt: of.notFoundAt ?? now },
        retryAt: new Date(now.getTime() + MINUTE),
      },
      now,
    ),
  });
  const row = session({ changes: 2 });

  test('is fetched again after the wait, without the changes that the fetch covered', () => {
    expect(notFound(row)).toMatchObject({
      ...{ notFoundAt: NOW, fault: 'gone', failures: 1, fetchedChanges: 2, retryAt: at(MINUTE) },
    });
    expect(notFound(notFound(row), at(MINUTE))).toMatchObject({
      notFoundAt: NOW,
      failures: 2,
      retryAt: at(2 * MINUTE),
    });
  });

  test('is fetched at once if an event came during the fetch', () => {
    expect(notFound(row, NOW, 1)).toMatchObject({ fetchedChanges: 1, retryAt: null });
  });

  test('is given up after seven days', () => {
    expect(notFound(notFound(row), at(7 * DAY - 1)).retryAt).not.toBeNull();
    expect(notFound(notFound(row), at(7 * DAY)).retryAt).toBeNull();
  });

  test('is gone at once if it was found before, otherwise after ten more lookups', () => {
    const isNews = (before: SessionRow) => notFound(before, at(1)).updatedAt > before.updatedAt;
    expect(isGone(notFound(fetched('Done')))).toBe(true);
    expect(isGone(notFound(row))).toBe(false);
    expect(isGone(notFound(session({ failures: 10 })))).toBe(true);
    expect([fetched('Done'), row, session({ failures: 10 })].map(isNews)).toEqual([true, false, true]);
    expect(isNews(notFound(fetched('Done'), at(1)))).toBe(false);
  });
});
