/** Says where a value first differs from a shape, as a JSON Pointer from the value on; undefined when it fits. */
export type Shape = (value: unknown) => string | undefined;

const shape =
  (fits: (value: unknown) => boolean): Shape =>
  (value) =>
    fits(value) ? undefined : '';

export const anyText = shape((value) => typeof value === 'string');
export const filledText = shape((value) => typeof value === 'string' && value.trim() !== '');
export const anyNumber = shape((value) => typeof value === 'number' && Number.isFinite(value));

/** One of some texts. */
export function oneOf(allowed: readonly string[]): Shape {
  return shape((value) => allowed.some((item) => item === value));
}

/** A list whose every item has one shape. */
export function listOf(item: Shape): Shape {
  return (value) => {
    if (!Array.isArray(value)) return '';
    for (const [index, entry] of value.entries()) {
      const fault = item(entry);
      if (fault !== undefined) return `/${index}${fault}`;
    }
    return undefined;
  };
}

/** An object with any keys, whose every value has one shape. A key is data: the fault names it as `*`. */
export function mapOf(item: Shape): Shape {
  return (value) => {
    if (!isObject(value)) return '';
    const fault = Object.values(value)
      .map(item)
      .find((found) => found !== undefined);
    return fault === undefined ? undefined : `/*${fault}`;
  };
}

/**
 * An object with named fields; other fields may be there and are not looked at.
 *
 * @param optional fields that may be absent or null
 */
export function fields(required: Record<string, Shape>, optional: Record<string, Shape> = {}): Shape {
  const all = [
    ...Object.entries(required),
    ...Object.entries(optional).map(([name, item]) => [name, orNull(item)] as const),
  ];
  return (value) => {
    if (!isObject(value)) return '';
    for (const [name, item] of all) {
      const fault = item(value[name]);
      if (fault !== undefined) return `/${name}${fault}`;
    }
    return undefined;
  };
}

function orNull(item: Shape): Shape {
  return (value) => (value === undefined || value === null ? undefined : item(value));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
