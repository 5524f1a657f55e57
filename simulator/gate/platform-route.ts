/** A request that passed the gate. */
export interface PlatformCall {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  /** Parsed JSON, not judged yet; undefined without a body. */
  body: unknown;
}

export interface PlatformAnswer {
  status: number;
  /** Sent as JSON; absent: no body. */
  body?: unknown;
}

/** One operation of the platform. It is handled at once and wholly: whatever follows (a cut, a delay) comes after. */
export interface PlatformRoute {
  /** The name that faults and statistics use; the contract file's name where it has one. */
  operation: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `:name` for parameters. */
  path: string;
  /** Whether calls count towards the user-management limit (spec, Limits). */
  userManagement?: boolean;
  /** @throws Refusal for an answer of 4xx */
  handle(call: PlatformCall): PlatformAnswer;
}
