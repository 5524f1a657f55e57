/** What a payload of unknown shape names. */
export interface NamedIds {
  processingId: string | null;
  sessionId: string | null;
}

/** Levels of nesting that are looked through. */
const DEEPEST = 8;

/** What no database keeps: NULs, and halves of characters. */
const UNFIT = /[\0\p{Cs}]/u;

/** Longer texts are no ids. */
const LONGEST_ID = 200;

/**
 * Looks for a `processingId` and a `sessionId` in a payload of which the spec shows nothing, nearest to its root first.
 *
 * @param payload any JSON value
 */
export function namedIds(payload: unknown): NamedIds {
  const found: NamedIds = { processingId: null, sessionId: null };
  let level: unknown[] = [payload];
  for (let depth = 0; depth <= DEEPEST && level.length > 0; depth++) {
    for (const value of level) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) continue;
      found.processingId ??= idUnder(value, 'processingId');
      found.sessionId ??= idUnder(value, 'sessionId');
    }
    if (found.processingId !== null && found.sessionId !== null) break;
    level = level.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []));
  }
  return found;
}

function idUnder(holder: object, key: string): string | null {
  const value: unknown = Object.hasOwn(holder, key) ? (holder as Record<string, unknown>)[key] : undefined;
  return typeof value === 'string' && value !== '' && value.length <= LONGEST_ID && !UNFIT.test(value) ? value : null;
}
