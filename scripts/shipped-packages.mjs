// The packages of the lockfile that are shipped: those that production installs, and those within the console's pages
// and the client.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The name of the package at a place of the lockfile, such as `node_modules/a/node_modules/@b/c`. */
export const nameAt = (place) => place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);

/** The place of the package that a package at `from` gets by a name, as Node looks it up. */
export function resolve(packages, from, name) {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const place = path.posix.join(at, 'node_modules', name);
    if (packages[place]) return place;
    if (at === '') return undefined;
  }
}

/** The package of an import. The folders' own files begin with a dot. */
const IMPORTED = /(?:\bfrom |\bimport\(|^import )'((?:@[\w-]+\/)?\w[\w-]*)(?:\/[^']*)?'/gm;

/** The console and the client, which the console and its users bring along. */
function importedByPages(root) {
  return ['console', 'client'].flatMap((name) => {
    const folder = path.join(root, name);
    const files = existsSync(folder) ? readdirSync(folder, { recursive: true }) : [];
    return files
      .filter((file) => /\.tsx?$/.test(file) && !/\.(spec|d)\.ts$/.test(file))
      .flatMap((file) => [...readFileSync(path.join(folder, file), 'utf8').matchAll(IMPORTED)].map(([, name]) => name));
  });
}

/** @param packages of the lockfile @returns the places of those that are shipped */
export function shippedPlaces(root, packages) {
  const isInstalled = (place) => place !== '' && !packages[place].dev && !packages[place].devOptional;
  const shipped = new Set(Object.keys(packages).filter(isInstalled));
  const bundle = (from, names) => {
    for (const name of names) {
      const place = resolve(packages, from, name);
      if (place === undefined || shipped.has(place)) continue;
      shipped.add(place);
      bundle(place, Object.keys(packages[place].dependencies ?? {}));
    }
  };
  bundle('', importedByPages(root));
  return shipped;
}
