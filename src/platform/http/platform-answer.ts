import { parseJson } from '../../text/json-object.js';
import { jsonShapeFault } from '../../text/json-text.js';
import type { Contract } from '../contract/contract.js';
import { readPointer, typeAt } from '../contract/json-pointer.js';
import type { OperationName } from '../contract/operations.js';
import { PlatformError } from '../contract/platform-errors.js';
import { isPlatformId } from '../contract/wire-types.js';

/** A 2xx answer. Its readers throw a {@link PlatformError} `unknown-outcome` if the answer lacks a value. */
export class PlatformAnswer {
  #parsed: { value: unknown } | undefined;

  /** @param text undefined if it is not UTF-8 */
  constructor(
    readonly operation: OperationName,
    readonly status: number,
    private readonly text: string | undefined,
    private readonly contract: Contract,
  ) {}

  /** The whole answer. It is parsed when it is first read, because some calls read no value. */
  get body(): unknown {
    this.#parsed ??= { value: this.parse() };
    return this.#parsed.value;
  }

  /** The value that the contract locates; undefined if there is none. */
  value(name: string): unknown {
    const pointer = this.pointer(name);
    return pointer === undefined ? undefined : readPointer(this.body, pointer);
  }

  /** True if the contract locates a field. */
  locates(name: string): boolean {
    return this.pointer(name) !== undefined;
  }

  requiredBoolean(name: string): boolean {
    const value = this.value(name);
    return typeof value === 'boolean' ? value : this.unreadableAt(name, 'no boolean');
  }

  requiredText(name: string, what = 'text', fits: (text: string) => boolean = () => true): string {
    const value = this.value(name);
    const isFilled = typeof value === 'string' && value.trim() !== '';
    return isFilled && fits(value) ? value : this.unreadableAt(name, `no ${what}`);
  }

  /** Reads an id that a database can store. */
  requiredId(name: string): string {
    return this.requiredText(name, 'id', isPlatformId);
  }

  requiredUrl(name: string): string {
    return this.requiredText(name, 'complete address', (text) => URL.canParse(text));
  }

  /** Fails the call because of the value that the contract locates, or of a part of it. @param fault such as "no id" */
  unreadableAt(name: string, fault: string, below = ''): never {
    const pointer = `${this.pointer(name) ?? ''}${below}`;
    return this.unreadable(`${fault} at ${pointer || 'the top'}, found ${typeAt(this.body, pointer)}`);
  }

  /** Fails the call, because the platform reports in its answer that it did nothing. */
  rejected(): never {
    const message = platformMessage(this.text ?? '', this.contract.errors.message);
    throw new PlatformError('rejected', this.operation, { status: this.status, platformMessage: message });
  }

  private pointer(name: string): string | undefined {
    const pointers: Readonly<Record<string, string | undefined>> = this.contract.operations[this.operation].response;
    return pointers[name];
  }

  private parse(): unknown {
    const { text } = this;
    if (text === undefined) return this.unreadable('an answer that is not UTF-8');
    const fault = jsonShapeFault(text);
    if (fault !== undefined) return this.unreadable(`an answer ${fault}`);
    const value = parseJson(text);
    if (value !== undefined) return value;
    return this.unreadable(text === '' ? 'an empty answer' : 'an answer that is not JSON');
  }

  /** Fails the call. @param reason the location of the fault; never a value from the answer */
  private unreadable(reason: string): never {
    throw new PlatformError('unknown-outcome', this.operation, { status: this.status, reason });
  }
}

/** Converts an answer other than 2xx to an error. @param messageAt where the contract locates the platform's message */
export function errorForAnswer(
  operation: PlatformError['operation'],
  answer: { status: number; retryAfter: unknown; text?: string | undefined; isPage?: boolean },
  now: Date,
  messageAt?: string,
): PlatformError {
  const { status, retryAfter, text = '', isPage = false } = answer;
  const message = isPage ? undefined : platformMessage(text, messageAt);
  const facts = { status, retryAfterMs: retryAfterMs(retryAfter, now), platformMessage: message };
  if (status === 429) return new PlatformError('rate-limited', operation, facts);
  // An intermediary may send 408 and 425, so the outcome is as unknown as for a 5xx.
  if (status === 408 || status === 425 || status >= 500) return new PlatformError('unknown-outcome', operation, facts);
  // A 403 or 404 of a store is about the upload URL, not about the API key or the subject of the call.
  if (operation === 'upload') return new PlatformError('rejected', operation, facts);
  if (status === 401 || status === 403) return new PlatformError('unauthorized', operation, facts);
  const isWrongAddress = status < 400 || status === 405 || isPage;
  return new PlatformError(status === 404 ? 'not-found' : 'rejected', operation, { ...facts, isWrongAddress });
}

/** The date format of RFC 9110, section 5.6.7, without its obsolete ones. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
/** Maximum wait, because an absurd header must not stop calls for days. */
const MAX_WAIT_MS = 60 * 60_000;

/** The wait in a Retry-After header (RFC 9110, section 10.2.3); undefined if it has none, or one in the past. */
export function retryAfterMs(header: unknown, now: Date): number | undefined {
  const text = String(header ?? '').trim();
  const date = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  const wait = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : date - now.getTime();
  return wait > 0 ? Math.min(MAX_WAIT_MS, wait) : undefined;
}

/** Maximum characters of the platform's message. */
const MAX_LENGTH = 500;

/** The message at a pointer of a body, or else the whole body; undefined if it is empty. One line, without parts of characters. */
function platformMessage(body: string, pointer: string | undefined): string | undefined {
  const isRead = pointer !== undefined && jsonShapeFault(body) === undefined;
  const value = isRead ? readPointer(parseJson(body), pointer) : undefined;
  const located = typeof value === 'string' ? value.trim() : JSON.stringify(value ?? undefined);
  const words = (located || body).replace(/[\s\p{Cc}\p{Cs}]+/gu, ' ').trim();
  if (words.length <= MAX_LENGTH) return words || undefined;
  return `${words.slice(0, MAX_LENGTH - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
