/** Characters of the platform's words that are kept. */
const MAX_LENGTH = 500;
/** In this order, since the spec leaves the shape of an error's body open. */
const FIELDS = ['message', 'detail', 'error', 'title', 'errors'];
const MAX_DEPTH = 3;
/** The first half of a surrogate pair that was cut in two. */
const HALF_CHARACTER = /[\uD800-\uDBFF]$/;

/**
 * Finds what the platform said in the body of an error answer, whose shape the spec does not show.
 *
 * @param body the parsed JSON, or the text itself when it is no JSON
 * @returns one line of at most 500 characters, which may hold personal data; undefined when there are no words for people
 */
export function platformMessage(body: unknown): string | undefined {
  const words = wordsOf(body, 0)
    .join('; ')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  if (words === '') return undefined;
  return words.length > MAX_LENGTH ? `${words.slice(0, MAX_LENGTH - 1).replace(HALF_CHARACTER, '')}…` : words;
}

function wordsOf(value: unknown, depth: number): string[] {
  if (typeof value === 'string') return value.trimStart().startsWith('<') ? [] : [value];
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return [];
  if (Array.isArray(value)) return value.slice(0, 20).flatMap((item) => wordsOf(item, depth + 1));
  for (const field of FIELDS) {
    const words = wordsOf(Reflect.get(value, field), depth + 1);
    if (words.length > 0) return words;
  }
  return [];
}
