import { accessSync, constants, mkdirSync } from 'node:fs';

const WHY: Record<string, string> = {
  EACCES: 'it or the folder above is not yours to write',
  EPERM: 'it or the folder above is not yours to write',
  EROFS: 'its disk takes no writes',
  ENOSPC: 'its disk is full',
  EEXIST: 'a file stands in its way',
  ENOTDIR: 'a file stands in its way',
};

/**
 * Makes the folder for what is kept between starts, unless it is there.
 *
 * @throws {Error} the sentence of `dataFolderFault` when it can't be made or written to
 */
export function makeDataFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Error(dataFolderFault(folder, error), { cause: error });
  }
}

/** Says why a data folder can't be used, and which setting to mend. @param error of the file system */
export function dataFolderFault(folder: string, error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
  return `The data folder ${folder} can not be used (${WHY[code] ?? code}): set DATA_DIR to a folder that you may write to.`;
}
