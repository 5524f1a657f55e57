// Writes the manifests of what is shipped into .data/production: package.json and the lockfile without what only
// development needs. `--omit=dev` of npm would keep more than a hundred packages: Prisma's tools and TypeScript, which are
// devDependencies, are also optional peers of packages of the service.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const folder = path.join(root, '.data/production');

const read = (file) => JSON.parse(readFileSync(path.join(root, file), 'utf8'));
const write = (file, value) => writeFileSync(path.join(folder, file), `${JSON.stringify(value, null, 2)}\n`);

const { scripts, devDependencies, allowScripts, overrides, ...manifest } = read('package.json');
// Nested ones are of tools, and refer to other tools.
const shipped = Object.entries(overrides).filter(([, version]) => typeof version === 'string');
const { packages, ...lockfile } = read('package-lock.json');
const { devDependencies: _, ...own } = packages[''];
const needed = new Set();

/** Adds what the package at a place depends on, as Node finds it. */
function addNeedsOf(place) {
  const { dependencies, optionalDependencies } = packages[place];
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const parts = place.split('/node_modules/');
    const places = parts.map((_, from) => [...parts.slice(0, parts.length - from), name].join('/node_modules/'));
    const found = [...places, `node_modules/${name}`].find((each) => packages[each]);
    if (!found || needed.has(found)) continue;
    needed.add(found);
    addNeedsOf(found);
  }
}

/** Where npm finds it; without this the bill of materials has no checksums. */
function addressOf(place, { version }) {
  const name = place.split('node_modules/').at(-1);
  return `https://registry.npmjs.org/${name}/-/${name.split('/').at(-1)}-${version}.tgz`;
}

addNeedsOf('');
const locked = Object.entries(packages)
  .filter(([place]) => needed.has(place))
  .map(([place, entry]) => [place, { ...entry, resolved: addressOf(place, entry) }]);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
write('package.json', { ...manifest, overrides: Object.fromEntries(shipped) });
// npm reads it in an unpacked package, too, and so installs the tested versions.
write('npm-shrinkwrap.json', { ...lockfile, packages: { '': own, ...Object.fromEntries(locked) } });
