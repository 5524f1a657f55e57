import { CliFault } from './cli-fault.js';

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
