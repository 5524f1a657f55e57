import { accessSync, constants, mkdirSync, statSync } from 'node:fs';

const WHY: Record<string, string> = {
  EACCES: 'this user may not write to it or to the folder above',
  EPERM: 'this user may not write to it or to the folder above',
  EROFS: 'its disk is read-only',
  ENOSPC: 'its disk is full',
  EEXIST: 'a file has its name',
  ENOTDIR: 'a file has its name',
};

/** Creates the data folder if it is missing. @throws {Error} as `dataFolderFault` */
export function makeDataFolder(folder: string): void {
  explain(folder, () => {
    mkdirSync(folder, { recursive: true });
    checkAccess(folder);
  });
}

/** Explains why a data folder cannot be used. @param error of the file system */
export function dataFolderFault(folder: string, error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
  return `The data folder ${folder} cannot be used (${WHY[code] ?? code}). Set DATA_DIR to a folder that this user may write to.`;
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
