import { readPointer } from '../../platform/contract/contract-schema.js';
import { isPlatformId } from '../../platform/contract/platform-id.js';

/** What an event names whose payload the spec does not show. */
export interface NamedIds {
  processingId: string | null;
  sessionId: string | null;
}

/**
 * Reads the ids of an event where the contract file says that they stand, and nowhere else: a field of the same name
 * may mean something else.
 *
 * @param body any JSON value
 * @param rule JSON Pointers; undefined: nothing is known of the event, so that it names nothing
 */
export function namedIds(body: unknown, rule: Partial<Record<keyof NamedIds, string>> = {}): NamedIds {
  return { processingId: idAt(body, rule.processingId), sessionId: idAt(body, rule.sessionId) };
}

function idAt(body: unknown, pointer: string | undefined): string | null {
  const value = pointer === undefined ? undefined : readPointer(body, pointer);
  return isPlatformId(value) ? value : null;
}
