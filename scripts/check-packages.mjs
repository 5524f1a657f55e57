// Each package of the lockfile comes from the registry, has a checksum and has a licence that someone has read.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { nameAt, shippedPlaces } from './shipped-packages.mjs';

const REGISTRY = 'https://registry.npmjs.org/';

/** Licences (SPDX) of what is shipped. They ask only that their text is kept. */
const SHIPPED = '0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BlueOak-1.0.0 ISC MIT Python-2.0 Unlicense'.split(' ');
/** Licences of tools, which are not shipped. */
const TOOLS = [...SHIPPED, 'CC-BY-4.0', 'CC0-1.0', 'EPL-2.0', 'MPL-2.0'];

/** Packages whose licence is only in their file LICENSE. */
const IN_A_FILE = { 'seq-queue': 'MIT' };

/** True if allowed licences satisfy an SPDX expression. WITH and nested parentheses do not occur. */
function isAllowed(expression, allowed) {
  const plain = expression.replace(/^\((.*)\)$/, '$1');
  if (/ or /i.test(plain)) return plain.split(/ or /i).some((part) => isAllowed(part, allowed));
  return plain.split(/ and /i).every((part) => allowed.includes(part));
}

/** The checksum of a package, or of the one whose archive it is part of. */
function integrityAt(packages, place) {
  const { inBundle, integrity = '' } = packages[place];
  if (!inBundle || integrity) return integrity;
  const outer = place.slice(0, place.lastIndexOf('/node_modules/'));
  return packages[outer] ? integrityAt(packages, outer) : '';
}

/** One line for each package below `root` that could be replaced unnoticed or whose licence is not allowed. */
export function findPackageFaults(root) {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  const shipped = shippedPlaces(root, packages);
  return Object.entries(packages).flatMap(([place, locked]) => {
    if (place === '') return [];
    const { version, resolved = REGISTRY, link, optional } = locked;
    const integrity = integrityAt(packages, place);
    const name = `${nameAt(place)} ${version}`;
    if (link || !resolved.startsWith(REGISTRY)) return [`${name} does not come from ${REGISTRY}`];
    if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity))
      return [`${name} has no integrity; run npm install --package-lock-only with a registry that has the package`];
    const manifest = path.join(root, place, 'package.json');
    const isInstalled = existsSync(manifest);
    if (optional && !isInstalled && !locked.license) return []; // a build for another platform
    const own = isInstalled ? JSON.parse(readFileSync(manifest, 'utf8')).license : undefined;
    const licence = own ?? locked.license ?? IN_A_FILE[nameAt(place)];
    if (typeof licence === 'string' && isAllowed(licence, shipped.has(place) ? SHIPPED : TOOLS)) return [];
    return [
      `${name} has the licence ${licence}, which is not allowed for ${shipped.has(place) ? 'production' : 'development'}`,
    ];
  });
}
