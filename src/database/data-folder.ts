import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import path from 'node:path';

const WHY: Record<string, string> = {
  EACCES: 'it or the folder above is not yours to write',
  EPERM: 'it or the folder above is not yours to write',
  EROFS: 'its disk takes no writes',
  ENOSPC: 'its disk is full',
  EEXIST: 'a file stands in its way',
  ENOTDIR: 'a file stands in its way',
};

/** Makes the folder for what is kept between starts, unless it is there. @throws {Error} as `dataFolderFault` says */
export function makeDataFolder(folder: string): void {
  explain(folder, () => {
    mkdirSync(folder, { recursive: true });
    checkAccess(folder);
  });
}

/**
 * Looks whether the folder can be used, or made, without making it: the caller may be another user than the service.
 *
 * @throws {Error} as `dataFolderFault` says
 */
export function checkDataFolder(folder: string): void {
  let place = path.resolve(folder);
  while (!existsSync(place)) place = path.dirname(place);
  explain(folder, () => checkAccess(place));
}

/** Says why a data folder can't be used, and which setting to mend. @param error of the file system */
export function dataFolderFault(folder: string, error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
  return `The data folder ${folder} can not be used (${WHY[code] ?? code}): set DATA_DIR to a folder that you may write to.`;
}

function explain(folder: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    throw new Error(dataFolderFault(folder, error), { cause: error });
  }
}

function checkAccess(folder: string): void {
  if (!statSync(folder).isDirectory()) throw Object.assign(new Error(`${folder} is a file`), { code: 'ENOTDIR' });
  accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
}
