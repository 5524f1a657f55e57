import { PROBLEM_TYPES, type ProblemType } from '../../words/problem-types.js';

/** Optional parts of a problem. */
interface ProblemExtras {
  /** Only of a type whose meaning in the catalogue names it; 301 needs the header Location. */
  status?: number;
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
  readonly status: number;

  /**
   * @param type stable word of the catalogue, which gives the status; callers branch on it
   * @param detail one sentence: what is wrong, where, what to do; no personal data
   */
  constructor(
    readonly type: ProblemType,
    readonly detail: string,
    readonly more: ProblemExtras = {},
  ) {
    super(detail);
    this.name = 'Problem';
    this.status = more.status ?? PROBLEM_TYPES[type][0];
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
