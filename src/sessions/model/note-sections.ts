import type { NoteLine } from './note-documents.js';

/** Deeper nesting is shown at this depth. */
const DEEPEST = 8;

/** The notes of one category, in their order. */
export interface NoteSection {
  category: string;
  /** What a reader sees: the platform's name of the category, or its word taken apart. */
  title: string;
  lines: { text: string; nestingLevel: number }[];
}

/** Groups notes by category, in the order in which the categories first appear. */
export function sectionsOf(notes: readonly NoteLine[]): NoteSection[] {
  const sections = new Map<string, NoteSection>();
  for (const { category, categoryName, text, nestingLevel } of notes) {
    const section = sections.get(category) ?? { category, title: categoryName?.trim() || inWords(category), lines: [] };
    section.lines.push({ text, nestingLevel: Math.min(DEEPEST, Math.max(0, Math.floor(nestingLevel))) });
    sections.set(category, section);
  }
  return [...sections.values()];
}

/** `ClientPresentation` is "Client Presentation". */
function inWords(category: string): string {
  return category.replace(/([a-z\d])([A-Z])/g, '$1 $2').trim() || 'Notes';
}
