/** Maximum characters of a column's name. */
const NAME_MAX = 100;

/** Maximum characters of an example. */
const EXAMPLE_MAX = 24;

/** The columns of a header as users see and choose them: unique names without control characters. */
export function columnNames(header: readonly string[]): string[] {
  const used = new Set<string>();
  const copies = new Map<string, number>();
  return header.map((cell, place) => {
    const base =
      cell
        .replace(/\p{Cc}+/gu, ' ')
        .trim()
        .slice(0, NAME_MAX) || `Column ${place + 1}`;
    let name = base;
    for (let copy = copies.get(base) ?? 2; used.has(name); copy++) {
      const suffix = ` (${copy})`;
      name = base.slice(0, NAME_MAX - suffix.length) + suffix;
      copies.set(base, copy + 1);
    }
    used.add(name);
    return name;
  });
}

/** A text with its letters and digits replaced, so that it shows a form and no person. */
export function maskedExample(text: string): string {
  return Array.from(text.trim().slice(0, 2 * EXAMPLE_MAX))
    .slice(0, EXAMPLE_MAX)
    .join('')
    .replace(/[\p{L}\p{M}]/gu, 'x')
    .replace(/\p{N}/gu, '9')
    .replace(/[\p{Cc}\p{Cs}]/gu, ' ');
}

const DATE = /\d[-/.]\d/;

/**
 * True if a line without two known names is a header all the same: its cells are words, and some column contains
 * numbers or addresses below a word. Otherwise it may be a person, whose cells must not be shown.
 */
export function looksLikeHeader(header: readonly string[], sample: readonly (readonly string[])[]): boolean {
  const names = header.map((name) => name.trim());
  const areWords = names.every(
    (name) => name === '' || (/\p{L}/u.test(name) && !name.includes('@') && !DATE.test(name)),
  );
  return (
    areWords &&
    names.some((name, place) => {
      if (name === '' || /\d/.test(name)) return false;
      const cells = filledCells(sample, place);
      return cells.length > 0 && cells.filter((cell) => /[\d@]/.test(cell)).length > cells.length / 2;
    })
  );
}

/** The cells of one column that are not blank. */
export function filledCells(sample: readonly (readonly string[])[], place: number): string[] {
  return sample.map((cells) => (cells[place] ?? '').trim()).filter((cell) => cell !== '');
}
