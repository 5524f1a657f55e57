/** The forms in which notes are given out; the first is the usual one. */
export const NOTE_FORMATS = ['application/json', 'text/markdown', 'application/fhir+json'] as const;
type NoteFormat = (typeof NOTE_FORMATS)[number];

interface Range {
  type: string;
  quality: number;
  /** 2 for `a/b`, 1 for `a/*`, 0 for any. */
  precision: number;
}

/**
 * Chooses the form that an Accept header likes best (RFC 9110 §12.5.1): the most precise range decides on a form's
 * quality, and among equals our own order does.
 *
 * @param accept undefined or blank: anything
 * @returns undefined when none of the forms is acceptable
 */
export function chooseFormat(accept: string | undefined): NoteFormat | undefined {
  if (!accept?.trim()) return NOTE_FORMATS[0];
  const ranges = accept.split(',').map(readRange);
  let best: { format: NoteFormat; quality: number } | undefined;
  for (const format of NOTE_FORMATS) {
    const quality = qualityOf(format, ranges);
    if (quality > (best?.quality ?? 0)) best = { format, quality };
  }
  return best?.format;
}

function readRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='));
  const quality = weight === undefined ? 1 : Number(weight.slice(2));
  const precision = type === '*/*' ? 0 : type.endsWith('/*') ? 1 : 2;
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0, precision };
}

function qualityOf(format: NoteFormat, ranges: Range[]): number {
  const [group] = format.split('/');
  const fitting = ranges
    .filter(({ type }) => type === format || type === `${group}/*` || type === '*/*')
    .sort((left, right) => right.precision - left.precision);
  return fitting[0]?.quality ?? 0;
}
