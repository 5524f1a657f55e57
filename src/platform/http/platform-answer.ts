import { readPointer } from '../contract/json-pointer.js';
import type { OperationName } from '../contract/operations.js';
import { PlatformError } from '../contract/platform-errors.js';
import { isPlatformId, platformKey } from '../contract/wire-types.js';

/** A 2xx answer. Reading it throws a {@link PlatformError} `unknown-outcome` when it does not hold what it should. */
export class PlatformAnswer {
  #parsed: { value: unknown } | undefined;
  /** The ids that were read, in the platform's own spelling. */
  readonly ids: string[] = [];

  /** @param pointers where the contract says that things stand in the answer */
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

  /** True if the contract locates a field. */
  locates(name: string): boolean {
    return this.pointers[name] !== undefined;
  }

  requiredBoolean(name: string): boolean {
    const value = this.value(name);
    return typeof value === 'boolean' ? value : this.unreadable(`no boolean at ${this.placeOf(name)}`);
  }

  requiredText(name: string): string {
    return this.required(name, 'text', () => true);
  }

  /** Reads an id that a database can store. @returns its `platformKey` */
  requiredId(name: string): string {
    const id = this.required(name, 'id', isPlatformId);
    this.ids.push(id);
    return platformKey(id);
  }

  requiredUrl(name: string): string {
    return this.required(name, 'complete address', (text) => URL.canParse(text));
  }

  /** The JSON Pointer, within the answer, of what the contract calls `name`, and of a part of it. */
  placeOf(name: string, below = ''): string {
    const pointer = `${this.pointers[name] ?? ''}${below}`;
    return pointer === '' ? 'the top' : pointer;
  }

  /** Gives the answer up. @param reason where it is wrong; never a value from it */
  unreadable(reason: string): never {
    throw new PlatformError('unknown-outcome', this.operation, { status: this.status, reason });
  }

  /** Fails the call, because the answer says that the platform did not do it. */
  rejected(): never {
    const facts = { status: this.status, platformMessage: platformMessage(this.body) };
    throw new PlatformError('rejected', this.operation, facts);
  }

  private required(name: string, what: string, fits: (text: string) => boolean): string {
    const value = this.value(name);
    const isFilled = typeof value === 'string' && value.trim() !== '';
    return isFilled && fits(value) ? value : this.unreadable(`no ${what} at ${this.placeOf(name)}`);
  }

  private parse(): unknown {
    try {
      return JSON.parse(this.text.replace(/^\uFEFF/, ''));
    } catch {
      return this.unreadable(this.text === '' ? 'an empty answer' : 'an answer that is no JSON');
    }
  }
}

/** Names what an answer other than 2xx means. @param now the moment from which a Retry-After date counts */
export function errorForAnswer(
  operation: PlatformError['operation'],
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
  // 408 and 425 are the sender's or an intermediary's, and say no more about the outcome than a 5xx does.
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

/** The three forms of RFC 9110, section 5.6.7; asctime, the last, carries no zone and means GMT. */
const HTTP_DATES = [
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
];
/** Milliseconds to which a wait is cut: a mistaken header must not stop anything for days. */
const LONGEST_MS = 60 * 60_000;

/** Milliseconds that a Retry-After header (RFC 9110, section 10.2.3) asks to wait; undefined when it names none to come. */
function retryAfterMs(header: string | undefined, now: Date): number | undefined {
  const text = header?.trim() ?? '';
  const date = HTTP_DATES.some((form) => form.test(text)) ? Date.parse(text.replace(/( GMT)?$/, ' GMT')) : Number.NaN;
  const wait = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : date - now.getTime();
  return wait > 0 ? Math.min(LONGEST_MS, wait) : undefined;
}

/** Characters of what the platform said that are kept. */
const MAX_LENGTH = 500;
/** Where an error may say it, in this order: the spec leaves the shape of its body open. */
const FIELDS = ['message', 'detail', 'error', 'title', 'errors'];
const MAX_DEPTH = 3;

/** What the platform said in the body of an error, in one line; undefined when there are no words for people. */
function platformMessage(body: unknown): string | undefined {
  const words = wordsOf(body, 0)
    .join('; ')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  if (words === '') return undefined;
  return words.length > MAX_LENGTH ? `${words.slice(0, MAX_LENGTH - 1).replace(/[\uD800-\uDBFF]$/, '')}…` : words;
}

function wordsOf(value: unknown, depth: number): string[] {
  if (typeof value === 'string') return value.trimStart().startsWith('<') ? [] : [value];
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return [];
  if (Array.isArray(value)) return value.slice(0, 20).flatMap((item) => wordsOf(item, depth + 1));
  for (const field of FIELDS) {
    const words = wordsOf(Reflect.get(value, field), depth + 1);
    if (words.length > 0) return words;
  }
  return [];
}
