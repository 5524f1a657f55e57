import { Problem } from '../http/problem/problem.js';

/**
 * A sealed value was made with a key that DATA_KEYS lacks. Its message names the key and the column, never the content.
 * Whoever asked for it gets it as a 503: the request is in order, and an operator has to act.
 */
export class MissingDataKey extends Problem {
  override readonly name = 'MissingDataKey';

  /** @param place table and column, e.g. `people.profile` */
  constructor(keyId: string, place: string) {
    const detail = `DATA_KEYS lacks the key ${keyId}, which sealed ${place}; add it behind the first.`;
    super(503, 'data-key-missing', detail, { extensions: { missing: [keyId] } });
  }
}
