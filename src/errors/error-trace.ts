import { codeOf } from './error-code.js';

/**
 * Messages of JavaScript that quote names of the program at most. That of `'id' in text` is missing: it quotes the
 * text.
 */
const NAMES_ONLY = [
  /^Cannot (read|set) properties of (undefined|null)( \((reading|setting) '[\w$]+'\))?$/,
  /^[\w$.()[\]]+ is not (a function|a constructor|defined|iterable)$/,
  /^Cannot access '[\w$]+' before initialization$/,
  /^Invalid (time value|array length|string length)$/,
  /^Maximum call stack size exceeded$/,
];

/** Members of database errors that name parts of the schema, never values. */
const SCHEMA_MEMBERS = ['severity', 'schema', 'table', 'column', 'constraint', 'routine'] as const;

/**
 * Describes an unexpected error for the log: its kind, its codes and where it was thrown. Messages are left out
 * (`invalid input syntax: "…"` quotes a value) unless they are known to quote no data.
 */
export function errorTrace(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { thrown: typeof error };
  const trace: Record<string, unknown> = { error: error.name };
  if (quotesNoData(error)) trace.message = error.message;
  for (const member of SCHEMA_MEMBERS) {
    const value = (error as unknown as Record<string, unknown>)[member];
    if (typeof value === 'string') trace[member] = value;
  }
  if (codeOf(error) !== '') trace.code = codeOf(error);
  trace.at = framesOf(error).slice(0, 12);
  if (error.cause !== undefined) trace.cause = errorTrace(error.cause);
  return trace;
}

/** The vault's error names keys and columns. */
function quotesNoData({ name, message }: Error): boolean {
  return name === 'MissingDataKey' || NAMES_ONLY.some((form) => form.test(message));
}

/** A code for a failure: SQLSTATE, problem type or kind of error; never a message, which may quote a value. */
export function failureCode(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const code = codeOf(error);
  if (/^[A-Z0-9_]{2,40}$/.test(code)) return /^[0-9A-Z]{5}$/.test(code) ? `database-${code}` : code;
  return /^[A-Za-z]{1,60}$/.test(error.name) ? error.name : 'unknown';
}

/** The stack frames of an error. The stack begins with the original message, whose lines may look like frames. */
function framesOf({ stack = '', message }: Error): string[] {
  if (!stack.includes(message)) return [];
  const lines = stack.slice(stack.indexOf(message) + message.length).split('\n');
  return lines.filter((line) => /^\s+at /.test(line)).map((line) => line.trim());
}
