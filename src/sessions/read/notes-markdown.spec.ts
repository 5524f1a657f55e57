import { note, notesOf } from './notes-documents.spec-support.js';
import { notesAsMarkdown } from './notes-markdown.js';

const body = (...lines: Parameters<typeof notesOf>[0]) =>
  notesAsMarkdown(notesOf(lines)).split('\n').slice(4).join('\n');

describe('notes as Markdown', () => {
  test('have a heading for each document and category, and list items by level', () => {
    const notes = notesOf([
      note('ClientPresentation', 'Calm today.', 0, 'Client presentation'),
      note('Plan', 'Goals:'),
      note('Plan', 'Sleep', 1),
      note('Plan', 'Eight hours', 2),
      note('ClientPresentation', 'Left early.'),
    ]);
    expect(notesAsMarkdown(notes)).toBe(
      [
        '# Session notes',
        '## Note template soap, revision 1',
        '### Client presentation',
        'Calm today.',
        'Left early.',
        '### Plan',
        'Goals:',
        '- Sleep\n  - Eight hours\n',
      ].join('\n\n'),
    );
  });

  test('escape markup in the text of a note', () => {
    expect(body(note('Plan', '# not a heading'))).toContain('\n\\# not a heading');
    expect(body(note('Plan', '1. not a list'))).toContain('1\\. not a list');
    expect(body(note('Plan', '<script>*x*</script>'))).toContain('\\<script>\\*x\\*\\</script>');
    expect(body(note('Plan', '    not code'))).not.toContain('    not code');
    expect(body(note('Plan', 'first\n---'))).toContain('first\n\\---');
  });

  test('never skip a list level, and indent the further lines of an item', () => {
    expect(body(note('Plan', 'deep', 5), note('Plan', 'two\nlines', 1))).toContain('- deep\n- two\n  lines');
  });

  test('state that notes were removed or cannot be decrypted', () => {
    const at = new Date('2026-03-01T11:00:00.000Z');
    expect(notesAsMarkdown(notesOf([], { removedAt: at }))).toContain('were removed at 2026-03-01T11:00:00.000Z.');
    expect(notesAsMarkdown(notesOf([], { unreadable: ['notes'] }))).toContain('changed or moved');
  });

  test('omit superseded documents, and state that no document is left', () => {
    const gone = notesOf([note('Plan', 'x')], { supersededAt: new Date('2026-03-01T11:00:00.000Z') });
    expect(notesAsMarkdown(gone)).toBe('# Session notes\n\nNo notes are available.\n');
  });
});
