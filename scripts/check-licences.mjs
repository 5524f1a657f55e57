// Every package has a licence that somebody has looked at. It is read from the lockfile, and from what is installed where
// the lockfile has none: no registry is asked.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { nameAt, shippedPlaces } from './shipped-packages.mjs';

/** SPDX names of what is handed on: all ask for no more than that their text is kept. */
const PRODUCTION = [
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'Python-2.0',
  'Unlicense',
];
/** Tools that are never handed on may have these, too. */
const DEVELOPMENT = [...PRODUCTION, 'CC-BY-4.0', 'CC0-1.0', 'EPL-2.0', 'MPL-2.0'];

/** What a package without a word in its manifest says in its file LICENSE. */
const IN_A_FILE = { 'seq-queue': 'MIT' };

/** Whether an SPDX expression is met by allowed licences. WITH and parentheses within parentheses occur nowhere. */
function isAllowed(expression, allowed) {
  const plain = expression.replace(/^\((.*)\)$/, '$1');
  if (/ or /i.test(plain)) return plain.split(/ or /i).some((part) => isAllowed(part, allowed));
  return plain.split(/ and /i).every((part) => allowed.includes(part));
}

function licenceOf(root, place, locked) {
  const manifest = path.join(root, place, 'package.json');
  const own = existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).license : undefined;
  return own ?? locked.license;
}

/** One line for every package below `root` whose licence is not allowed. */
export function findLicenceFaults(root) {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  const shipped = shippedPlaces(root, packages);
  return Object.entries(packages).flatMap(([place, locked]) => {
    if (place === '') return [];
    const name = nameAt(place);
    const licence = licenceOf(root, place, locked) ?? IN_A_FILE[name];
    const isTool = !shipped.has(place);
    // A build for another platform: its package's own is judged.
    if (licence === undefined && locked.optional && !existsSync(path.join(root, place))) return [];
    if (typeof licence === 'string' && isAllowed(licence, isTool ? DEVELOPMENT : PRODUCTION)) return [];
    const use = isTool ? 'development' : 'production';
    return [`${name} ${locked.version} has the licence ${licence ?? '(none named)'}, which is not allowed for ${use}`];
  });
}
