import type { SealedPlace } from '../../vault/vault.js';

/** Where a delivery's body is sealed: its id is not known before the commit, its signature is. @param signature in hex */
export function bodyPlace(signature: string): SealedPlace {
  return { table: 'webhook_deliveries', column: 'body', row: signature };
}
