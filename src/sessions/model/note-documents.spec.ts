import type { Note, SessionDocument } from '../../platform/contract/session-answer.js';
import { compareDocuments } from './note-documents.js';
import type { NoteResponse } from './session-view.js';

const fingerprintOf = (notes: NoteResponse[]) => Buffer.from(JSON.stringify(notes));
const note = (text: string, more: Partial<Note> = {}): Note => ({ category: 'Plan', text, ...more });
const document = (template: string, text: string, id = `d-${template}`): SessionDocument => ({
  sessionDocumentId: id,
  noteTemplateId: template,
  notes: [note(text)],
});

/** The stored documents after a series of answers. */
class Records {
  documents: Parameters<typeof compareDocuments>[0][number][] = [];
  revisions: [id: string, revision: number][] = [];

  store(documents: SessionDocument[], complete = true): ReturnType<typeof compareDocuments> {
    const changes = compareDocuments(this.documents, { documents, complete }, fingerprintOf);
    for (const { notes, id, ...write } of changes.writes) {
      const stored = { ...write, id: id ?? `document-${write.noteTemplateId}-${write.ordinal}`, superseded: false };
      this.documents = [...this.documents.filter((other) => other.id !== stored.id), stored];
      if (notes) this.revisions.push([stored.id, stored.revision]);
    }
    for (const known of this.documents) known.superseded ||= changes.superseded.includes(known.id);
    return changes;
  }
}

describe('documents of a session', () => {
  let records: Records;

  beforeEach(() => {
    records = new Records();
    records.store([document('soap', 'one'), document('dap', 'one')]);
  });

  test('the first answer creates the first revision of each', () => {
    expect(records.revisions).toEqual([
      ['document-soap-0', 1],
      ['document-dap-0', 1],
    ]);
  });

  test('the same content changes nothing', () => {
    const changes = records.store([document('soap', 'one'), document('dap', 'one')]);
    expect(changes).toEqual({ writes: [], superseded: [], readable: false, newRevisions: 0 });
  });

  test('a document missing from incomplete notes is not superseded and keeps its position', () => {
    const changes = records.store([document('dap', 'two')], false);
    expect([changes.superseded, changes.writes.length, changes.readable]).toEqual([[], 1, true]);
    expect(changes.writes[0]?.position).toBe(1);
  });

  test('documents keep their positions if the answer is incomplete; new ones follow them', () => {
    const { writes } = records.store([document('dap', 'two'), document('girp', 'one')], false);
    expect(writes.map(({ noteTemplateId, position }) => [noteTemplateId, position])).toEqual([
      ['dap', 1],
      ['girp', 3],
    ]);
  });

  test('other content creates a new revision of that document only', () => {
    const changes = records.store([document('soap', 'two'), document('dap', 'one')]);
    expect(changes.writes).toMatchObject([{ noteTemplateId: 'soap', revision: 2 }]);
    expect(changes.readable).toBe(true);
  });

  test('content that returns to an earlier version creates a new revision', () => {
    records.store([document('soap', 'two'), document('dap', 'one')]);
    records.store([document('soap', 'one'), document('dap', 'one')]);
    expect(records.revisions.filter(([id]) => id === 'document-soap-0')).toHaveLength(3);
  });

  test('a changed sessionDocumentId stays in the chain of its template', () => {
    const changes = records.store([document('soap', 'two', 'another'), document('dap', 'one')]);
    expect(changes.writes).toMatchObject([{ id: 'document-soap-0', sessionDocumentId: 'another', revision: 2 }]);
    expect(chainedByPlatformId([document('soap', 'one')], [document('soap', 'two', 'another')])).toEqual([
      'd-soap',
      'another',
    ]);
  });

  test('a changed sessionDocumentId with the same content is stored without a new revision', () => {
    const changes = records.store([document('soap', 'one', 'another'), document('dap', 'one')]);
    expect(changes.writes).toMatchObject([{ sessionDocumentId: 'another', revision: 1, notes: null }]);
    expect(changes.readable).toBe(false);
  });

  test('the notes change once if a document disappears', () => {
    expect(records.store([document('dap', 'one')]).readable).toBe(true);
    expect(records.store([document('dap', 'one')]).readable).toBe(false);
  });

  test('a missing document is superseded once, and returns with its revision', () => {
    expect(records.store([document('soap', 'one')]).superseded).toEqual(['document-dap-0']);
    expect(records.store([document('soap', 'one')]).superseded).toEqual([]);
    const back = records.store([document('soap', 'one'), document('dap', 'one')]);
    expect(back.writes).toMatchObject([{ id: 'document-dap-0', revision: 1, notes: null }]);
    expect(back.readable).toBe(true);
  });

  test('a document that returns with other content continues its chain', () => {
    records.store([document('soap', 'one')]);
    expect(records.store([document('dap', 'two')]).writes).toMatchObject([{ id: 'document-dap-0', revision: 2 }]);
  });

  test('two documents of the same template have separate chains', () => {
    const changes = records.store([document('soap', 'one'), document('soap', 'more', 'd-2'), document('dap', 'one')]);
    expect(changes.writes[0]).toMatchObject({ id: null, noteTemplateId: 'soap', ordinal: 1, revision: 1 });
  });

  test('stores a note’s category, category name and nesting level', () => {
    const fetched = {
      ...document('girp', ''),
      notes: [note('a', { categoryName: 'The plan', formatting: { nestingLevel: 2 } }), note('b')],
    };
    expect(compareDocuments([], { documents: [fetched], complete: true }, fingerprintOf).writes[0]?.notes).toEqual([
      { category: 'Plan', categoryName: 'The plan', text: 'a', nestingLevel: 2 },
      { category: 'Plan', categoryName: null, text: 'b', nestingLevel: 0 },
    ]);
  });

  /** Wrong: one chain for each sessionDocumentId. */
  function chainedByPlatformId(...answers: SessionDocument[][]): string[] {
    return [...new Set(answers.flat().map(({ sessionDocumentId }) => sessionDocumentId))];
  }
});
