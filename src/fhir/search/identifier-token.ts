/** An identifier that a search names. */
interface IdentifierToken {
  /** Undefined if the search names only the value; empty if it asks for identifiers without a system. */
  readonly system: string | undefined;
  readonly value: string;
}

/**
 * Reads `system|value`, `|value` or `value` (FHIR R4 §3.1.1.4.10), with the escapes `\|`, `\,`, `\$` and `\\`.
 *
 * @returns undefined for a list of values, a value of more than two parts, and a token without a value
 */
export function readIdentifierToken(text: string): IdentifierToken | undefined {
  const parts = [''];
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (letter === ',') return undefined;
    if (letter === '|') parts.push('');
    else {
      if (letter === '\\' && /[\\|,$]/.test(text[at + 1] ?? '')) at += 1;
      parts.push(`${parts.pop()}${text[at]}`);
    }
  }
  const [value = '', system, ...more] = parts.reverse();
  return value === '' || more.length > 0 ? undefined : { system, value };
}
