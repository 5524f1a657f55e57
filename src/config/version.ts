import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The version of this notebridge. */
export function version(): string {
  return (JSON.parse(readFileSync(projectPath('package.json'), 'utf8')) as { version: string }).version;
}

/** The path of a file of the project, seen from the compiled file and from the source. */
export function projectPath(file: string): string {
  const root = __dirname.includes(`${path.sep}dist${path.sep}`) ? '../../..' : '../..';
  return path.resolve(__dirname, root, file);
}
