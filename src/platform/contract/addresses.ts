import { createHash } from 'node:crypto';
import type { Contract } from './contract.js';
import { factsOf, OPERATION_NAMES, type OperationName } from './operations.js';

/** A path's segment that names a version: two of them, though different, are one too many. */
const VERSION = /^v\d{1,9}$/i;

/**
 * The address of every operation that can be called, and one warning about each prefix that stands twice: a path is
 * appended to the base URL whole.
 */
export function calledAddresses(contract: Contract, base: string) {
  const addresses: { operation: OperationName; method: string; url: string }[] = [];
  const warnings = new Map<string, string>();
  for (const operation of OPERATION_NAMES) {
    const { method, path } = contract.operations[operation];
    if (!method || !path || contract.missingFor(operation).length > 0) continue;
    const url = base + path;
    addresses.push({ operation, method, url });
    const doubled = doubledPrefix(new URL(base).pathname, path);
    if (doubled === undefined || warnings.has(doubled)) continue;
    const warning = `${operation} is called at ${method} ${url}, where ${doubled} stands twice: take it off PLATFORM_BASE_URL, or set operations.${operation}.path in the contract file.`;
    warnings.set(doubled, warning);
  }
  return { addresses, warnings: [...warnings.values()] };
}

function doubledPrefix(basePath: string, path: string): string | undefined {
  const base = segmentsOf(basePath);
  const begun = segmentsOf(path);
  for (let length = Math.min(base.length, begun.length); length > 0; length--) {
    if (base.slice(-length).every((segment, place) => isSame(segment, begun[place] ?? '')))
      return `/${begun.slice(0, length).join('/')}`;
  }
  return undefined;
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

function isSame(left: string, right: string): boolean {
  return left === right || (VERSION.test(left) && VERSION.test(right));
}

/**
 * Names where an operation lives: the same for all that share the platform's base, the path up to what they are about
 * (`/users` of `/users/check` and of `/users/{userId}`), headers and query, for a version may stand in each of these.
 * What follows behind the id is trusted as the spec shows it. A digest, since a header or a query may hold a secret.
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
