/** Optional parts of a problem. */
interface ProblemExtras {
  /** The offending field as a JSON Pointer (RFC 6901). */
  pointer?: string;
  /** How long to wait before the same request may succeed; also sent as Retry-After. */
  retryAfterSeconds?: number;
  /** Further members of the answer's body; ids and counts, never personal data. */
  extensions?: Record<string, unknown>;
  /** Headers of the answer, such as WWW-Authenticate. */
  headers?: Record<string, string>;
}

/** Thrown anywhere in a feature to answer a request with an RFC 9457 problem. */
export class Problem extends Error {
  /**
   * @param status HTTP status, 400..599, or 301 with the header Location
   * @param type stable word such as `unknown-provider`; callers branch on it
   * @param detail one sentence: what is wrong, where, what to do; no personal data
   */
  constructor(
    readonly status: number,
    readonly type: string,
    readonly detail: string,
    readonly more: ProblemExtras = {},
  ) {
    super(detail);
    this.name = 'Problem';
  }

  /** The body to answer with (RFC 9457). Its title is the type in words: `unknown-provider` is "Unknown provider". */
  details(): Record<string, unknown> {
    const { status, detail } = this;
    const { pointer, retryAfterSeconds, extensions } = this.more;
    const words = this.type.replaceAll('-', ' ');
    const title = words.charAt(0).toUpperCase() + words.slice(1);
    const type = `urn:notebridge:problem:${this.type}`;
    return { ...extensions, type, title, status, detail, pointer, retryAfterSeconds };
  }

  /** The headers to answer with. */
  headers(): Record<string, string> {
    const { headers, retryAfterSeconds } = this.more;
    if (retryAfterSeconds === undefined) return { ...headers };
    return { ...headers, 'retry-after': String(Math.max(1, Math.ceil(retryAfterSeconds))) };
  }
}
