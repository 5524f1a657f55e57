/** A UUID of any version and variant. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Answers whether a text can be compared with a uuid column. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
