/** A JSON Pointer (RFC 6901); the empty one points at the whole document. */
export const POINTER = /^(\/([^~/]|~[01])*)*$/u;
const ARRAY_INDEX = /^(0|[1-9]\d*)$/;

/** Reads the value at a JSON Pointer; undefined if there is none. Ignores inherited members. */
export function readPointer(document: unknown, pointer: string): unknown {
  const tokens = pointer.split('/').slice(1);
  const names = tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  return names.reduce<unknown>(member, document);
}

/** The JSON type at a pointer, such as "a number", never the value. For a missing one also where its path ends. */
export function typeAt(document: unknown, pointer: string): string {
  const value = readPointer(document, pointer);
  if (value !== undefined) return typeOf(value);
  let parent = pointer;
  while (parent !== '' && readPointer(document, parent) === undefined)
    parent = parent.slice(0, parent.lastIndexOf('/'));
  const lacks = typeOf(readPointer(document, parent));
  return `nothing (${parent === '' ? 'the top' : parent} is ${lacks}${lacks === 'an object' ? ' without it' : ''})`;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'string') return value.trim() === '' ? 'an empty text' : 'a text';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function member(value: unknown, token: string): unknown {
  if (Array.isArray(value)) return ARRAY_INDEX.test(token) ? value[Number(token)] : undefined;
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return undefined;
  return Reflect.get(value, token);
}
