import { createHash } from 'node:crypto';
import type { Contract } from './contract.js';
import { factsOf, type OperationName } from './operations.js';

/**
 * Names where an operation lives: the same for all that share the platform's base, the path up to what they are about
 * (`/users` of `/users/check` and of `/users/{userId}`), headers and query, for a version may stand in each of these.
 * What follows behind the id is trusted as the spec shows it; anything else is an address of its own.
 *
 * @param base the platform's address
 * @returns a digest: a header or a query may hold what is nobody's business
 */
export function operationAddress(contract: Contract, base: string, operation: OperationName): string {
  const { path = '', headers, query } = contract.operations[operation];
  const before = path.split('{', 1)[0] ?? '';
  const collection = before.slice(0, before.lastIndexOf('/'));
  const after = path.slice(before.length);
  const shown = factsOf(operation).path ?? '';
  const more = after === '' || shown.endsWith(`/${after}`) ? [] : [after];
  return createHash('sha256')
    .update(JSON.stringify([base, collection, headers, query, ...more]))
    .digest('hex');
}
