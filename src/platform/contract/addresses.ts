import { createHash } from 'node:crypto';
import type { Contract } from './contract.js';
import { OPERATION_NAMES, type OperationName } from './operations.js';

/** Lists the URL of every configured operation, with a warning for the first path that repeats a part of the base URL. */
export function calledAddresses(contract: Contract, base: string) {
  const addresses = OPERATION_NAMES.filter((operation) => contract.canCall(operation)).map((operation) => {
    const { method, path = '' } = contract.operations[operation];
    return { operation, method, path, url: base + path };
  });
  const inBase = new URL(base).pathname.split('/').filter((segment) => segment !== '');
  const doubled = addresses.find(({ path }) => inBase.includes(path.split('/')[1] ?? ''));
  if (!doubled) return { addresses, warnings: [] };
  const { operation, method, path, url } = doubled;
  const warning = `${operation} is called at ${method} ${url}, which contains /${path.split('/')[1]} twice. Remove it from PLATFORM_BASE_URL, or set operations.${operation}.path in the contract file.`;
  return { addresses, warnings: [warning] };
}

/** A digest of where and how an operation is called, because a header or a query may contain a secret. */
export function operationUrl(contract: Contract, base: string, operation: OperationName): string {
  const { method, path, headers, query } = contract.operations[operation];
  return urlDigest(JSON.stringify([base, method, path, headers, query]));
}

/** A digest of a URL, which may contain a secret. */
export function urlDigest(url: string): string {
  return createHash('sha256').update(url).digest('base64url').slice(0, 22);
}
