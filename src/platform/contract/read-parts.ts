/**
 * Readers of untrusted values, which lose the smallest unreadable part. They are linear, and copy only what they change.
 *
 * @param lost is called for each part that is left out
 * @returns undefined if no part of the value is readable
 */
export type Read<T> = (value: unknown, lost: () => void) => T | undefined;

type Readers = Readonly<Record<string, Read<unknown>>>;
type Value<R> = R extends Read<infer T> ? T : never;
type Fields<Required extends Readers, Optional extends Readers> = {
  [Name in keyof Required]: Value<Required[Name]>;
} & { [Name in keyof Optional]?: Value<Optional[Name]> | null | undefined };

/** True for a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const text: Read<string> = (value) => (typeof value === 'string' ? value : undefined);
export const number: Read<number> = (value) => (Number.isFinite(value) ? (value as number) : undefined);

/** Replaces an unreadable value by a readable one. */
export function orElse<T>(read: Read<T>, instead: T): Read<T> {
  return (value, lost) => {
    const readable = read(value, lost);
    if (readable === undefined) lost();
    return readable ?? instead;
  };
}

/** A list without its unreadable items. */
export function listOf<T>(item: Read<T>): Read<T[]> {
  return (values, lost) => {
    if (!Array.isArray(values)) return undefined;
    let changed: T[] | undefined;
    for (let at = 0; at < values.length; at += 1) {
      const readable = item(values[at], lost);
      if (readable !== values[at]) changed ??= values.slice(0, at);
      if (readable === undefined) lost();
      else changed?.push(readable);
    }
    return changed ?? values;
  };
}

/** A list that the platform may leave out or set to null if it is empty. */
export function listOrNone<T>(item: Read<T>): Read<T[]> {
  const list = listOf(item);
  return (value, lost) => (value === undefined || value === null ? [] : list(value, lost));
}

/**
 * An object without its unreadable optional fields, with all fields that have no reader. It is unreadable if one of its
 * required fields is.
 */
export function objectOf<Required extends Readers, Optional extends Readers>(
  required: Required,
  optional: Optional,
): Read<Fields<Required, Optional>> {
  const fields = [
    ...Object.entries(required).map(([name, read]) => ({ name, read, isRequired: true })),
    ...Object.entries(optional).map(([name, read]) => ({ name, read, isRequired: false })),
  ];
  return (value, lost) => {
    if (!isObject(value)) return undefined;
    let object = value;
    for (const { name, read, isRequired } of fields) {
      const field = value[name];
      if (!isRequired && (field === undefined || field === null)) continue;
      const readable = read(field, lost);
      if (readable === field) continue;
      if (readable === undefined && isRequired) return undefined;
      if (object === value) object = { ...value };
      if (readable === undefined) lost();
      // Not deleted, because that would make hundreds of thousands of objects slow.
      object[name] = readable;
    }
    return object as Fields<Required, Optional>;
  };
}

/** An object with any keys, without its unreadable values. */
export function mapOf<T>(item: Read<T>): Read<Record<string, T>> {
  return (map, lost) => {
    if (!isObject(map)) return undefined;
    const entries: [string, T][] = [];
    for (const [key, value] of Object.entries(map)) {
      const readable = item(value, lost);
      if (readable === undefined) lost();
      else entries.push([key, readable]);
    }
    return Object.fromEntries(entries);
  };
}
