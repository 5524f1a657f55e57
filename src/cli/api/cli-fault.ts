import { withCommands } from './commands-of-routes.js';

/** The parts of an error answer that a program needs. `type` is the service's, such as `urn:notebridge:problem:unknown-session`. */
interface AnsweredFault {
  status: number;
  type?: string;
  pointer?: string;
}

/** A failure that one sentence explains; the command prints it and exits with `exitCode`. */
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

/** The service does not answer at present; it may be restarting. */
export class Unreachable extends CliFault {}

interface Problem {
  type?: string;
  pointer?: string;
  detail: string;
  errors?: { pointer: string; detail: string }[];
  /** The name of the file with the fault. */
  file?: unknown;
  /** The person that already has what the request names. */
  kind?: string;
  externalId?: string;
}

/**
 * An error answer in one sentence, followed by further faults of the same request.
 *
 * @param body the answer's text, usually problem+json
 */
export function sentenceOf(status: number, body: string): string {
  const problem = problemOf(body);
  if (!problem) return `The service answered ${status} without a reason. Check its log.`;
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
  ENOENT: (file) => `${file}: no such file or folder. Check the path.`,
  EISDIR: (file) =>
    `${file} is a folder. Name the files in it, one by one or as ${file.replace(/(?<!\/)\/+$/, '')}/*.csv.`,
  EACCES: (file) => `${file}: this user may not open it (EACCES). Change its permissions, or choose another path.`,
  EROFS: (file) => `${file} is on a read-only file system (EROFS). Choose another path.`,
  EEXIST: (file) => `${file} already exists. Choose another name, or remove it.`,
  ENOSPC: (file) => `${file}: the disk is full (ENOSPC). Free some space, or choose another path.`,
};

/**
 * Why a user's file cannot be read or written.
 *
 * @param file as the user named it
 * @param error what the file system threw
 */
export function fileFault(file: string, error: unknown): CliFault {
  const { code = 'no reason given' } = error as { code?: string };
  return new CliFault(BY_CODE[code]?.(file) ?? `${file} cannot be opened (${code}).`);
}
