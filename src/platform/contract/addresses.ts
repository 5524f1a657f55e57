import { createHash } from 'node:crypto';
import type { Contract } from './contract.js';
import { factsOf, OPERATION_NAMES, type OperationName } from './operations.js';

/** A path segment with a version. Even two different ones are a doubled prefix. */
const VERSION = /^v\d{1,9}$/i;

/** Lists the URL of every configured operation, with a warning for each prefix that the base URL and a path share. */
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
    const warning = `${operation} is called at ${method} ${url}, which contains ${doubled} twice. Remove it from PLATFORM_BASE_URL, or set operations.${operation}.path in the contract file.`;
    warnings.set(doubled, warning);
  }
  return { addresses, warnings: [...warnings.values()] };
}

/** The longest end of the base path with which a path starts. */
function doubledPrefix(basePath: string, path: string): string | undefined {
  const [base = [], own = []] = [basePath, path].map((each) => each.split('/').filter((segment) => segment !== ''));
  const isSame = (segment: string, other = '') => segment === other || (VERSION.test(segment) && VERSION.test(other));
  const starts = base.findIndex((_, start) => base.slice(start).every((segment, place) => isSame(segment, own[place])));
  return starts === -1 ? undefined : `/${own.slice(0, base.length - starts).join('/')}`;
}

/**
 * Identifies the API that an operation belongs to: base URL, the path of the collection (`/users` of `/users/check` and
 * `/users/{userId}`), headers and query, because a version may be in any of them. A path after the id counts only if it
 * differs from the spec. The result is a digest, because headers and query may contain secrets.
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
