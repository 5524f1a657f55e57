import { inspect } from 'node:util';

const PLACEHOLDER = '[recorder token]';

/** The single-use token that opens the recorder. It prints as a placeholder wherever it is logged or serialised. */
export class RecorderToken {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The token itself: for the recorder's address and nothing else. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return PLACEHOLDER;
  }

  toJSON(): string {
    return PLACEHOLDER;
  }

  [inspect.custom](): string {
    return PLACEHOLDER;
  }
}
