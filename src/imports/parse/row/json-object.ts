export type JsonObject = Record<string, unknown>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object that a text holds, or undefined when it is not JSON or something else. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Items of a list that are looked at: no person has so many names, identifiers or providers. */
const ITEMS_MAX = 1_000;

/** The objects of a list, as far as it is looked at; nothing where there is no list. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.slice(0, ITEMS_MAX).filter(isJsonObject) : [];
}

/** A string without blanks at its ends; undefined when it is empty or no string. */
export function textIn(value: unknown): string | undefined {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : text;
}
