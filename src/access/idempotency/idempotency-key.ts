import { Problem } from '../../http/problem/problem.js';

/**
 * Reads the Idempotency-Key header.
 *
 * @returns undefined when there is none
 * @throws {Problem} 400 `bad-idempotency-key` unless it is 1..255 printable ASCII characters
 */
export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const key = Array.isArray(header) ? header.join(', ') : header;
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw new Problem(
    400,
    'bad-idempotency-key',
    'The header Idempotency-Key must be 1 to 255 printable ASCII characters; a UUID is a good one.',
  );
}

/** JSON with the members of every object in one order, so that a body written in another order is the same body. */
export function canonicalJson(value: unknown): string {
  return (
    JSON.stringify(value, (_name, member: unknown) =>
      typeof member === 'object' && member !== null && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
        : member,
    ) ?? ''
  );
}
