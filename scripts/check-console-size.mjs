// The first page of the console must load quickly, also on a phone, so the scripts that it loads first have a limit.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

/** Bytes of compressed script. */
const MOST = 150_000;

/** Returns one line if the scripts of the first page are too large together. @param root the project's folder */
export function findConsoleExcess(root, most = MOST) {
  const built = path.join(root, 'dist/console');
  const manifest = path.join(built, 'manifest.json');
  if (!existsSync(manifest)) return ['dist/console does not exist. Run npm run build.'];
  const chunks = JSON.parse(readFileSync(manifest, 'utf8'));
  const needed = new Set();
  const need = (name) => {
    if (needed.has(name)) return;
    needed.add(name);
    for (const other of chunks[name].imports ?? []) need(other);
  };
  need('index.html');
  // The page that follows the sign-in is loaded immediately.
  need('pages/overview/overview-page.tsx');
  const bytes = [...needed]
    .map((name) => gzipSync(readFileSync(path.join(built, chunks[name].file))).length)
    .reduce((sum, length) => sum + length, 0);
  return bytes < most ? [] : [`the first page loads ${bytes} bytes of compressed script; the limit is ${most}`];
}
