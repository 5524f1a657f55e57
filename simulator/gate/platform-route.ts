/** A request that the gate has accepted. */
export interface PlatformCall {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  /** Parsed, unchecked JSON; undefined without a body. */
  body: unknown;
}

export interface PlatformAnswer {
  status: number;
  /** Sent as JSON; absent: no body. */
  body?: unknown;
}

/** One operation of the platform. It is handled immediately and completely; a cut or a delay follows afterwards. */
export interface PlatformRoute {
  /** The name that faults and statistics use; the contract file's name where it has one. */
  operation: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `:name` for parameters. */
  path: string;
  /** True if calls count towards the user-management limit (spec, Limits). */
  userManagement?: boolean;
  /** @throws Refusal for a 4xx answer */
  handle(call: PlatformCall): PlatformAnswer;
}
