// Every package of the lockfile has a checksum and comes from the registry, so that an installation gets what was reviewed.
import { readFileSync } from 'node:fs';
import path from 'node:path';

const REGISTRY = 'https://registry.npmjs.org/';

/** One line for every package below `root` that could be replaced unnoticed. */
export function findLockfileFaults(root) {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  return Object.entries(packages).flatMap(([place, { version, integrity = '', resolved = REGISTRY, link }]) => {
    if (place === '') return [];
    const name = `${place.slice(place.lastIndexOf('node_modules/') + 13)} ${version}`;
    if (link || !resolved.startsWith(REGISTRY)) return [`${name} does not come from ${REGISTRY}`];
    if (/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity)) return [];
    return [`${name} has no integrity; run npm install --package-lock-only with a registry that has the package`];
  });
}
