/** A failure that one sentence explains; the command prints it and ends with `exitCode`. */
export class CliFault extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
    this.name = 'CliFault';
  }
}

/** The service does not answer at present: it may be starting again. */
export class Unreachable extends CliFault {}

interface Problem {
  detail: string;
  errors?: { pointer: string; detail: string }[];
  /** The name of the file that is at fault. */
  file?: unknown;
}

/** Whether a value is what an error answer of the service holds (RFC 9457). */
function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'detail' in value && typeof value.detail === 'string';
}

/**
 * Says an error answer in one sentence, with further faults of the same request behind it.
 *
 * @param body the answer's text, problem+json as a rule
 */
export function sentenceOf(status: number, body: string): string {
  const problem = parsed(body);
  if (!isProblem(problem)) return `The service answered ${status}, without saying why; its log may.`;
  const others = (problem.errors ?? []).slice(1).map((fault) => `${fault.pointer} ${fault.detail}`);
  const more = others.length > 0 ? ` Also: ${others.join('; ')}.` : '';
  const advice = status === 401 ? ' The key is taken from NOTEBRIDGE_KEY, then ADMIN_API_KEY.' : '';
  return inFile(problem) + more + advice;
}

/** The service counts files; whoever sent them knows them by name. */
function inFile({ detail, file }: Problem): string {
  return typeof file === 'string' ? detail.replace(/^File \d+(?=, )/, () => file) : detail;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const BY_CODE: Record<string, (file: string) => string> = {
  ENOENT: (file) => `${file}: there is no such file or folder; check the path.`,
  EISDIR: (file) =>
    `${file} is a folder: name the files in it, one by one or as ${file.replace(/(?<!\/)\/+$/, '')}/*.csv.`,
  EACCES: (file) => `${file}: this user may not open it (EACCES); change its rights, or choose another place.`,
  EROFS: (file) => `${file}: nothing can be written there (EROFS); choose another place.`,
  EEXIST: (file) => `${file} is there already: name another file, or remove that one.`,
  ENOSPC: (file) => `${file}: the disk is full (ENOSPC); free some space, or choose another place.`,
};

/**
 * Says in one sentence why a file of the user's can be neither read nor written.
 *
 * @param file as the user named it
 * @param error what the file system threw
 */
export function fileFault(file: string, error: unknown): CliFault {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no reason given';
  return new CliFault(BY_CODE[code]?.(file) ?? `${file} can not be opened (${code}).`);
}
