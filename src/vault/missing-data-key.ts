/** A sealed value was made with a key that DATA_KEYS lacks. Its message names the key and the column, never the content. */
export class MissingDataKey extends Error {
  override readonly name = 'MissingDataKey';

  /** @param place table and column, e.g. `people.profile` */
  constructor(keyId: string, place: string) {
    super(`DATA_KEYS lacks the key ${keyId}, which sealed ${place}; add it behind the first.`);
  }
}
