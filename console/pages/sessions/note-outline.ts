import type { Schemas } from '../../api/client.js';

type Note = Schemas['NoteResponse'];

/** A paragraph, or an item of a list with the items below it. */
export interface OutlineItem {
  text: string;
  isListed: boolean;
  items: OutlineItem[];
}

interface OutlineSection {
  title: string;
  items: OutlineItem[];
}

/** Deeper nesting is shown at this depth. */
const MAX_DEPTH = 8;

/**
 * The notes of a document by category, in the order in which the categories first appear. A nesting level above 0 is a
 * list item, which can only be one level deeper than the one above it.
 */
export function outlineOf(notes: readonly Note[]): OutlineSection[] {
  const sections = new Map<string, Note[]>();
  for (const note of notes) sections.set(note.category, [...(sections.get(note.category) ?? []), note]);
  return [...sections].map(([category, within]) => ({
    title: within.find(({ categoryName }) => categoryName?.trim())?.categoryName ?? inWords(category),
    items: nested(within),
  }));
}

function nested(notes: readonly Note[]): OutlineItem[] {
  const top: OutlineItem[] = [];
  // The open list of each level.
  let open: OutlineItem[][] = [top];
  for (const { text, nestingLevel } of notes) {
    const level = Math.min(Math.max(0, Math.floor(nestingLevel)), open.length, MAX_DEPTH);
    const item: OutlineItem = { text, isListed: level > 0, items: [] };
    if (level === 0) open = [top];
    else open = open.slice(0, level);
    open.at(-1)?.push(item);
    if (level > 0) open.push(item.items);
  }
  return top;
}

/** `ClientPresentation` is "Client Presentation". */
const inWords = (category: string) => category.replace(/([a-z\d])([A-Z])/g, '$1 $2').trim() || 'Notes';

/** A document as plain text, to compare two revisions. */
export function textOf(notes: readonly Note[]): string {
  const lines = (items: readonly OutlineItem[], indent: string): string[] =>
    items.flatMap(({ text, isListed, items: below }) => [
      `${indent}${isListed ? '• ' : ''}${text}`,
      ...lines(below, `${indent}  `),
    ]);
  return outlineOf(notes)
    .map(({ title, items }) => [title, ...lines(items, '')].join('\n'))
    .join('\n\n');
}
