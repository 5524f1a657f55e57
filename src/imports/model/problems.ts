import { Problem } from '../../http/problem/problem.js';
import type { ImportState } from './import.js';

/** A request that an import does not accept in its state. */
export function wrongState(state: ImportState, accepted: readonly ImportState[]): Problem {
  const detail = `The import is ${state}; this is possible only if it is ${accepted.join(' or ')}.`;
  return new Problem('wrong-state', detail, { extensions: { state } });
}

export function unknownImport(): Problem {
  return new Problem('import-not-found', 'No import has this id. GET /v1/imports lists the imports.');
}
