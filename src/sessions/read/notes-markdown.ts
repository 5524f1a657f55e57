import type { DocumentResponse, NoteResponse, NotesResponse } from '../model/session-view.js';

/** Renders the current documents of a session as CommonMark; markup in the platform's texts is escaped. */
export function notesAsMarkdown(notes: NotesResponse): string {
  const current = notes.documents.filter((document) => document.supersededAt === null);
  if (current.length === 0) return '# Session notes\n\nNo notes are available.\n';
  return ['# Session notes', ...current.map((document) => documentAsMarkdown(document, 2))].join('\n\n').concat('\n');
}

/**
 * Renders one document.
 *
 * @param level of its heading
 */
export function documentAsMarkdown(document: DocumentResponse, level = 1): string {
  const template = document.noteTemplateName ?? `Note template ${document.noteTemplateId}`;
  const heading = `${'#'.repeat(level)} ${escaped(template)}, revision ${document.revision}`;
  const sections = sectionsOf(document.notes).map(({ title, lines }) =>
    [`${'#'.repeat(level + 1)} ${escaped(title.replace(/\s+/g, ' ').trim())}`, ...blocks(lines)].join('\n\n'),
  );
  const { removedAt, unreadable, incomplete } = document;
  const notices = [
    removedAt && `These notes were removed at ${removedAt.toISOString()}.`,
    unreadable && 'These notes cannot be shown: their stored value was changed or moved.',
    incomplete && 'Parts of these notes could not be read. The platform has the complete document.',
  ];
  return [heading, ...notices.filter(Boolean), ...sections].join('\n\n');
}

/** Paragraphs, with adjacent list items in one block. */
function blocks(lines: NoteSection['lines']): string[] {
  const inLines = (text: string, indent = '') =>
    text
      .split(/\r\n?|\n/)
      .map(escaped)
      .join(`\n${indent}`);
  const result: string[] = [];
  let depth = 0;
  for (const { text, nestingLevel } of lines) {
    const isInList = depth > 0;
    // An item can only be one level deeper than the one above it, or it would become a code block.
    depth = Math.min(nestingLevel, depth + 1);
    if (depth === 0) {
      result.push(inLines(text));
      continue;
    }
    const item = `${'  '.repeat(depth - 1)}- ${inLines(text, '  '.repeat(depth))}`;
    result.push(isInList ? `${result.pop()}\n${item}` : item);
  }
  return result;
}

/** Escapes markup in a line (CommonMark 0.31, Backslash escapes). */
function escaped(line: string): string {
  return line
    .trimStart()
    .replace(/[\\`*_[\]<&~|]/g, '\\$&')
    .replace(/^(#|>|\+|-|=)/, '\\$1')
    .replace(/^(\d{1,9})([.)])/, '$1\\$2');
}

/** Deeper nesting is shown at this depth. */
const MAX_DEPTH = 8;

/** The notes of one category, in order. */
interface NoteSection {
  /** The platform's name of the category, or its code split at capitals. */
  title: string;
  lines: { text: string; nestingLevel: number }[];
}

/** Groups notes by category, in the order in which the categories first appear. */
function sectionsOf(notes: readonly NoteResponse[]): NoteSection[] {
  const sections = new Map<string, NoteSection>();
  for (const { category, categoryName, text, nestingLevel } of notes) {
    const section = sections.get(category) ?? { title: categoryName?.trim() || inWords(category), lines: [] };
    section.lines.push({ text, nestingLevel: Math.min(MAX_DEPTH, Math.max(0, Math.floor(nestingLevel))) });
    sections.set(category, section);
  }
  return [...sections.values()];
}

/** `ClientPresentation` is "Client Presentation". */
function inWords(category: string): string {
  return category.replace(/([a-z\d])([A-Z])/g, '$1 $2').trim() || 'Notes';
}
