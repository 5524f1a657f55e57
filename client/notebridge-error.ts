/** A field of a request that was rejected. */
export interface FieldFault {
  /** JSON Pointer (RFC 6901). */
  pointer: string;
  detail: string;
}

/** Members of a problem besides the usual ones; each type of problem has its own. */
export interface ProblemMembers {
  /** Of `cursor-gone`: the cursor from which all available events follow. */
  continueAfter?: string;
  /** Of `session-exists`: the id of the existing session. */
  session?: string;
  /** Of `renamed` and `merged`: the id to use. */
  externalId?: string;
  /** Of `validation`: every rejected field, first the one that `detail` names. */
  errors?: readonly FieldFault[];
  [name: string]: unknown;
}

/** Optional parts of an error. */
export interface ErrorParts {
  pointer?: string | undefined;
  retryAfter?: number | undefined;
  more?: ProblemMembers;
  cause?: unknown;
}

/** A failure of the client. Branch on `type`, and show `message`. */
export class NotebridgeError extends Error {
  /** JSON Pointer (RFC 6901) of the rejected field, if there is one. */
  readonly pointer: string | undefined;
  /** How long to wait before the same request, in seconds; undefined if the answer names no time. */
  readonly retryAfter: number | undefined;
  /** Further members of the problem. */
  readonly more: ProblemMembers;

  /**
   * @param type word of docs/reference/problems.md, such as `cursor-gone`, or one of the client's own: `no-answer`,
   *   `unreadable-answer`, `bad-end`, and those of `verifyWebhook`
   * @param status of the HTTP answer; 0 if no answer of the service failed
   * @param detail one or two sentences: what is wrong and what to do
   */
  constructor(
    readonly type: string,
    readonly status: number,
    readonly detail: string,
    { pointer, retryAfter, more = {}, cause }: ErrorParts = {},
  ) {
    super(detail, cause === undefined ? undefined : { cause });
    this.name = 'NotebridgeError';
    this.pointer = pointer;
    this.retryAfter = retryAfter;
    this.more = more;
  }
}

const PREFIX = 'urn:notebridge:problem:';

/**
 * Reads the problem details (RFC 9457) of a failed answer. A proxy may have given the answer, so it may have none.
 *
 * @throws the error of the connection if the answer is cut off
 */
export async function errorOfAnswer(response: Response): Promise<NotebridgeError> {
  const { status, url, headers } = response;
  const origin = URL.canParse(url) ? new URL(url).origin : 'The server';
  return errorOf(status, await response.text(), headers.get('retry-after'), origin);
}

/**
 * Makes an error of the parts of a failed answer.
 *
 * @param header the value of Retry-After: seconds or a date (RFC 9110 §10.2.3)
 * @param origin of the server that answered
 * @param now milliseconds since 1970, for a date
 */
export function errorOf(
  status: number,
  text: string,
  header: string | null,
  origin: string,
  now = Date.now(),
): NotebridgeError {
  const { type, detail, pointer, retryAfterSeconds, title: _, status: __, ...more } = membersOf(text);
  const isProblem = typeof type === 'string' && type.startsWith(PREFIX);
  return new NotebridgeError(
    isProblem ? type.slice(PREFIX.length) : 'unreadable-answer',
    status,
    isProblem && typeof detail === 'string' ? detail : unexplained(status, origin),
    {
      pointer: typeof pointer === 'string' ? pointer : undefined,
      retryAfter: typeof retryAfterSeconds === 'number' ? retryAfterSeconds : secondsOf(header, now),
      more: isProblem ? more : {},
    },
  );
}

function unexplained(status: number, origin: string): string {
  const answered = `${origin} answered with the status ${status} and no problem details.`;
  return status < 500 ? `${answered} Check the url of the client.` : answered;
}

function membersOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function secondsOf(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1_000));
}
