import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The version of this notebridge, seen from the compiled file and from the source alike. */
export function version(): string {
  const root = __dirname.includes(`${path.sep}dist${path.sep}`) ? '../../..' : '../..';
  const text = readFileSync(path.resolve(__dirname, root, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
