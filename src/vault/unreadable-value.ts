import { Problem } from '../http/problem/problem.js';

/**
 * Thrown when DATA_KEYS lacks the key of a value. The message names the key and the column, never the content. It is a
 * 503, because the request is valid and an operator has to act.
 */
export class MissingDataKey extends Problem {
  override readonly name = 'MissingDataKey';

  /** @param place table and column, e.g. `people.profile` */
  constructor(keyId: string, place: string) {
    const detail = `DATA_KEYS lacks the key ${keyId}, which encrypted ${place}. Add it after the first key and restart.`;
    super('data-key-missing', detail, { extensions: { missing: [keyId] } });
  }
}

/** Thrown when a value was changed, moved or cut short. A 503 for the same reason. */
export class UnreadableValue extends Problem {
  override readonly name = 'UnreadableValue';

  /** @param place table and column, e.g. `people.profile` */
  constructor(place: string) {
    const detail = `An encrypted value of ${place} cannot be decrypted, because it was changed, moved or truncated. Restore its row, which the log names, from a backup.`;
    super('data-unreadable', detail);
  }
}

/** Opens a value; undefined if that fails, so that one bad row never fails a list. The vault counts and logs it. */
export function openIfReadable<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch (error) {
    return undefinedIfUnreadable(error);
  }
}

/** The same, but throws if the key is missing, because the value opens once the key is back. */
export function openUnlessDamaged<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch (error) {
    return undefinedIfDamaged(error);
  }
}

/** The same as {@link openUnlessDamaged} for the `catch` of a promise. */
export function undefinedIfDamaged(error: unknown): undefined {
  if (!(error instanceof UnreadableValue)) throw error;
}

/** The same as {@link openIfReadable} for the `catch` of a promise. */
export function undefinedIfUnreadable(error: unknown): undefined {
  if (!(error instanceof UnreadableValue || error instanceof MissingDataKey)) throw error;
}
