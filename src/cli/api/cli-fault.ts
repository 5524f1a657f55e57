import { withCommands } from './commands-of-routes.js';

/** An error answer for programs. `type` is the service's, such as `urn:notebridge:problem:unknown-session`. */
interface AnsweredFault {
  status: number;
  type?: string;
  pointer?: string;
}

/** A failure that one sentence explains; the command prints it and ends with `exitCode`. */
export class CliFault extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
    /** The service's answer. */
    readonly answer?: AnsweredFault,
  ) {
    super(message);
    this.name = 'CliFault';
  }
}

/** The service does not answer at present: it may be starting again. */
export class Unreachable extends CliFault {}

interface Problem {
  type?: string;
  pointer?: string;
  detail: string;
  errors?: { pointer: string; detail: string }[];
  /** The name of the file that is at fault. */
  file?: unknown;
  /** The person that has what the request names. */
  kind?: string;
  externalId?: string;
}

/**
 * An error answer in one sentence, with further faults of the same request behind it.
 *
 * @param body the answer's text, problem+json as a rule
 */
export function sentenceOf(status: number, body: string): string {
  const problem = problemOf(body);
  if (!problem) return `The service answered ${status} without a reason. See its log.`;
  const { detail, errors = [], file, kind, externalId } = problem;
  // The service counts files; the user knows them by name.
  const named = typeof file === 'string' ? detail.replace(/^File \d+(?=, )/, () => file) : detail;
  const others = errors.slice(1).map((fault) => `${fault.pointer} ${fault.detail}`);
  const more = others.length > 0 ? ` Also: ${others.join('; ')}.` : '';
  const holder = kind && externalId ? ` (${kind} ${externalId})` : '';
  return (
    withCommands(named) +
    more +
    holder +
    (status === 401 ? ' The key is taken from NOTEBRIDGE_KEY, then ADMIN_API_KEY.' : '')
  );
}

/** The status, type and pointer of an error answer. */
export function answeredFault(status: number, body: string): AnsweredFault {
  const { type, pointer } = problemOf(body) ?? {};
  return { status, type, pointer };
}

function problemOf(text: string): Problem | undefined {
  try {
    const value = JSON.parse(text) as Partial<Problem> | null;
    return typeof value?.detail === 'string' ? (value as Problem) : undefined;
  } catch {
    return undefined;
  }
}

const BY_CODE: Record<string, (file: string) => string> = {
  ENOENT: (file) => `${file}: the file or folder does not exist. Check the path.`,
  EISDIR: (file) =>
    `${file} is a folder. Name the files in it, one by one or as ${file.replace(/(?<!\/)\/+$/, '')}/*.csv.`,
  EACCES: (file) => `${file}: permission denied (EACCES). Change its permissions, or choose another place.`,
  EROFS: (file) => `${file} is on a read-only disk (EROFS). Choose another place.`,
  EEXIST: (file) => `${file} already exists. Name another file, or remove that one.`,
  ENOSPC: (file) => `${file}: the disk is full (ENOSPC). Free some space, or choose another place.`,
};

/**
 * Why a file of the user's can be neither read nor written.
 *
 * @param file as the user named it
 * @param error what the file system threw
 */
export function fileFault(file: string, error: unknown): CliFault {
  const { code = 'no reason given' } = error as { code?: string };
  return new CliFault(BY_CODE[code]?.(file) ?? `${file} cannot be opened (${code}).`);
}
