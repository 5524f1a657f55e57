/** Maximum levels of JSON that is read. Code that works on parsed values may recurse over them. */
export const MAX_JSON_DEPTH = 100;

/** Maximum objects and lists of JSON that is read. A million are parsed in about 100 ms; more would block the process. */
export const MAX_JSON_CONTAINERS = 1_000_000;

/** The media type of a Content-Type header in lower case, without parameters. */
export function mediaTypeOf(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** The charset of a Content-Type header in lower case. Defaults to UTF-8, in which JSON is sent (RFC 8259, section 8.1). */
export function charsetOf(contentType = ''): string {
  const [, charset = ''] = /;[ \t]*charset[ \t]*=[ \t]*"?([^";\s]*)/i.exec(contentType) ?? [];
  return charset.toLowerCase() || 'utf-8';
}

/** Decodes a text, and drops a byte-order mark. @returns undefined if the bytes are not UTF-8 */
export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [...'"\\[]{}'].map((character) =>
  character.charCodeAt(0),
);

/**
 * Finds a shape that would be costly or dangerous to parse, without parsing: linear, without recursion, and up to the
 * first fault.
 *
 * @returns such as "nested more than 100 levels"; undefined if there is none, which does not mean that the text is JSON
 */
export function jsonShapeFault(text: string): string | undefined {
  let depth = 0;
  let containers = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (code === OPEN_OBJECT || code === OPEN_LIST) {
      depth += 1;
      containers += 1;
      if (depth > MAX_JSON_DEPTH) return `nested more than ${MAX_JSON_DEPTH} levels`;
      if (containers > MAX_JSON_CONTAINERS) return `of more than ${MAX_JSON_CONTAINERS} objects and lists`;
    } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth -= 1;
  }
  return undefined;
}

/** The place of the quote that ends a string; the end of the text if none does. @param start of its first quote */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}
