import { createHash } from 'node:crypto';
import type { Contract } from './contract.js';
import { OPERATION_NAMES, type OperationName } from './operations.js';

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
