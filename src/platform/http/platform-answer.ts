import { readPointer } from '../contract/json-pointer.js';
import type { OperationName } from '../contract/operations.js';
import { PlatformError, type PlatformErrorSubject } from '../contract/platform-errors.js';
import { isPlatformId } from '../contract/platform-id.js';
import { platformMessage } from './platform-message.js';
import { retryAfterMs } from './retry-after.js';

/** A 2xx answer. Reading it throws a {@link PlatformError} `unknown-outcome` when it does not hold what it should. */
export class PlatformAnswer {
  #parsed: { value: unknown } | undefined;

  /**
   * @param text the body; empty when the answer has none
   * @param pointers where the contract says that things stand in the answer
   */
  constructor(
    readonly operation: OperationName,
    readonly status: number,
    private readonly text: string,
    private readonly pointers: Readonly<Record<string, string | undefined>>,
  ) {}

  /** The whole answer. */
  get body(): unknown {
    this.#parsed ??= { value: this.parse() };
    return this.#parsed.value;
  }

  /** What stands where the contract says; undefined when nothing does or when the contract names no place. */
  value(name: string): unknown {
    const pointer = this.pointers[name];
    return pointer === undefined ? undefined : readPointer(this.body, pointer);
  }

  /** A text that has to be there. */
  requiredText(name: string): string {
    const value = this.value(name);
    return typeof value === 'string' && value.trim() !== ''
      ? value
      : this.unreadable(`no text at ${this.placeOf(name)}`);
  }

  /** An id that has to be there: what no database keeps can't be one. */
  requiredId(name: string): string {
    const value = this.value(name);
    return isPlatformId(value) && value.trim() !== '' ? value : this.unreadable(`no id at ${this.placeOf(name)}`);
  }

  /** The JSON Pointer, within the answer, of what the contract calls `name`, and of a part of it. */
  placeOf(name: string, below = ''): string {
    const pointer = `${this.pointers[name] ?? ''}${below}`;
    return pointer === '' ? 'the top' : pointer;
  }

  /**
   * Gives the answer up.
   *
   * @param reason where it is wrong; never a value from it
   */
  unreadable(reason: string): never {
    throw new PlatformError('unknown-outcome', this.operation, { status: this.status, reason });
  }

  private parse(): unknown {
    try {
      return JSON.parse(this.text.replace(/^\uFEFF/, ''));
    } catch {
      return this.unreadable(this.text === '' ? 'an empty answer' : 'an answer that is no JSON');
    }
  }
}

/**
 * Names what an answer other than 2xx means. 408 and 425 are the sender's or an intermediary's, and tell no more about
 * the outcome than a 5xx does.
 *
 * @param answer its status, Retry-After header, body and whether that is a web page
 * @param now the moment from which a Retry-After date counts
 */
export function errorForAnswer(
  operation: PlatformErrorSubject,
  answer: { status: number; retryAfter: string | undefined; text: string; isPage?: boolean },
  now: Date,
): PlatformError {
  const { status, text } = answer;
  const facts = {
    status,
    retryAfterMs: retryAfterMs(answer.retryAfter, now),
    platformMessage: platformMessage(parsedOrText(text)),
  };
  if (status === 429) return new PlatformError('rate-limited', operation, facts);
  if (status === 408 || status === 425 || status >= 500) return new PlatformError('unknown-outcome', operation, facts);
  // A store's 403 and 404 speak of the upload address, not of the API key or of something that the platform knows.
  if (operation === 'upload') return new PlatformError('rejected', operation, facts);
  if (status === 401 || status === 403) return new PlatformError('unauthorized', operation, facts);
  const isWrongAddress = status < 400 || status === 405 || answer.isPage === true;
  return new PlatformError(status === 404 ? 'not-found' : 'rejected', operation, { ...facts, isWrongAddress });
}

function parsedOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
