// Which packages of the lockfile are handed on: those that production installs, and those within the console's pages.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The name of the package at a place of the lockfile, such as `node_modules/a/node_modules/@b/c`. */
export const nameAt = (place) => place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);

/** The place of what a package at `from` gets when it asks for a name, as Node looks for it. */
export function resolve(packages, from, name) {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const place = `${at === '' ? '' : `${at}/`}node_modules/${name}`;
    if (packages[place]) return place;
    if (at === '') return undefined;
  }
}

/** The package of an import, whether static or when it is needed; files of the console's own begin with a dot. */
const IMPORTED = /(?:\bfrom |\bimport\(|^import )'((?:@[\w-]+\/)?\w[\w-]*)(?:\/[^']*)?'/gm;

/** The packages that the sources of the console name. */
function importedByConsole(root) {
  const folder = path.join(root, 'console');
  const sources = existsSync(folder) ? readdirSync(folder, { recursive: true }) : [];
  const names = sources
    .filter((file) => /\.tsx?$/.test(file) && !/\.(spec|d)\.ts$/.test(file))
    .flatMap((file) => [...readFileSync(path.join(folder, file), 'utf8').matchAll(IMPORTED)])
    .map(([, name]) => name);
  return [...new Set(names)];
}

/** @param packages of the lockfile @returns the places of those that are handed on */
export function shippedPlaces(root, packages) {
  const installed = Object.keys(packages).filter(
    (place) => place !== '' && !packages[place].dev && !packages[place].devOptional,
  );
  const shipped = new Set(installed);
  const bundle = (from, names) => {
    for (const name of names) {
      const place = resolve(packages, from, name);
      if (place === undefined || shipped.has(place)) continue;
      shipped.add(place);
      bundle(place, Object.keys(packages[place].dependencies ?? {}));
    }
  };
  bundle('', importedByConsole(root));
  return shipped;
}
