import { isEmailAddress } from '../../../people/rules/person-field-rules.js';

/** Texts that stand for an empty cell. */
const PLACEHOLDERS = new Set(
  'none n/a na n.a. - -- --- . ? declined refused unknown null nil no noemail no-email'.split(' '),
);

/** Characters of a text in which an address is looked for. */
const TEXT_MAX = 2_000;

/** True if a text is a placeholder for an empty value, such as `N/A`. */
export function isPlaceholder(text: string): boolean {
  return PLACEHOLDERS.has(text.trim().toLowerCase());
}

/**
 * The first usable email address in a text such as `a@example.org; b@example.org`, `"Ann" <a@example.org>` or
 * `mailto:a@example.org`. Empty if the text is empty or a placeholder, and the text itself if no address is usable, so
 * that the validation rejects it.
 */
export function usableEmail(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return '';
  if (isEmailAddress(trimmed) && !trimmed.includes('|')) return trimmed;
  if (isPlaceholder(trimmed)) return '';
  // `ann roe@example.org` does not mean roe@example.org, which may be another person's.
  const parts = trimmed
    .slice(0, TEXT_MAX)
    .split(/[;,<>"|]+/)
    .map((part) => part.split(/\s+/).map((word) => word.replace(/^mailto:/i, '')))
    .map((words) => words.filter((word) => word !== ''))
    .filter((words) => words.every(isEmailAddress))
    .flat();
  return parts[0] ?? trimmed;
}
