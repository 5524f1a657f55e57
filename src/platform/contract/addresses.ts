import { createHash } from 'node:crypto';
import type { Contract } from './contract.js';
import { OPERATION_NAMES, type OperationName } from './operations.js';

/** A path segment with a version. */
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
    const warning = `${operation} is called at ${method} ${url}, which contains ${doubled}. Remove it from PLATFORM_BASE_URL, or set operations.${operation}.path in the contract file.`;
    warnings.set(doubled, warning);
  }
  return { addresses, warnings: [...warnings.values()] };
}

/**
 * The longest end of the base path with which a path starts. Versions may differ, as in `/api/v1/api/v2`, if another
 * segment is the same: `/v1/v9` has no doubled prefix.
 *
 * @returns such as "/api twice" or "both /api/v1 and /api/v2"
 */
function doubledPrefix(basePath: string, path: string): string | undefined {
  const [base = [], own = []] = [basePath, path].map((each) => each.split('/').filter((segment) => segment !== ''));
  const isVersion = (segment: string, other = '') => VERSION.test(segment) && VERSION.test(other);
  for (let start = 0; start < base.length; start += 1) {
    const end = base.slice(start);
    const isPrefix = end.every((segment, place) => segment === own[place] || isVersion(segment, own[place]));
    if (!isPrefix || !end.some((segment, place) => segment === own[place])) continue;
    const [inBase, inPath] = [end, own.slice(0, end.length)].map((segments) => `/${segments.join('/')}`);
    return inBase === inPath ? `${inBase} twice` : `both ${inBase} and ${inPath}`;
  }
  return undefined;
}

/**
 * A digest of where and how an operation is called, because a header or a query may contain a secret. A version of the
 * API may be in the path, a header or the query.
 */
export function operationUrl(contract: Contract, base: string, operation: OperationName): string {
  const { method, path, headers, query } = contract.operations[operation];
  return urlDigest(JSON.stringify([base, method, path, headers, query]));
}

/** A digest of a URL, which may contain a secret. */
export function urlDigest(url: string): string {
  return createHash('sha256').update(url).digest('base64url').slice(0, 22);
}
