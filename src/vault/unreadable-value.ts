import { Problem } from '../http/problem/problem.js';

/**
 * A sealed value was made with a key that DATA_KEYS lacks. Its message names the key and the column, never the content.
 * It is a 503: the request is in order, and an operator has to act.
 */
export class MissingDataKey extends Problem {
  override readonly name = 'MissingDataKey';

  /** @param place table and column, e.g. `people.profile` */
  constructor(keyId: string, place: string) {
    const detail = `DATA_KEYS lacks the key ${keyId}, which sealed ${place}; add it behind the first.`;
    super(503, 'data-key-missing', detail, { extensions: { missing: [keyId] } });
  }
}

/** A sealed value was changed, moved or cut short. A 503 for the same reason. */
export class UnreadableValue extends Problem {
  override readonly name = 'UnreadableValue';

  /** @param place table and column, e.g. `people.profile` */
  constructor(place: string) {
    const detail = `A sealed value of ${place} does not open: it was changed, moved or cut short; restore its row, which the log names, from a backup.`;
    super(503, 'data-unreadable', detail);
  }
}

/** What opens; undefined where it does not, so that one bad row never fails a list: the vault has counted and logged it. */
export function ifReadable<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch (error) {
    return noneIfUnreadable(error);
  }
}

/** The same for a damaged value alone: one whose key is missing may open again. */
export function ifNotDamaged<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch (error) {
    return noneIfDamaged(error);
  }
}

/** The same as {@link ifNotDamaged} for the `catch` of a promise. */
export function noneIfDamaged(error: unknown): undefined {
  if (!(error instanceof UnreadableValue)) throw error;
}

/** The same as {@link ifReadable} for the `catch` of a promise. */
export function noneIfUnreadable(error: unknown): undefined {
  if (!(error instanceof UnreadableValue || error instanceof MissingDataKey)) throw error;
}
