// npm run sbom: the packages that production may load or that the console's pages hold, as CycloneDX 1.5, from the
// lockfile. `npm sbom --omit dev` lacks a third of them: what development needs, too, Nest among them (npm 11.19), and
// what is bundled.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { nameAt, resolve, shippedPlaces } from './shipped-packages.mjs';

const licencesOf = ({ license }) =>
  license && { licenses: [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }] };

/** `algorithm-base64`, as npm writes it, in hexadecimal. */
function hashOf({ integrity }) {
  const [algorithm, base64] = integrity.split('-');
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(base64, 'base64').toString('hex') };
}

/** The bill of materials of the project at `root`. */
export function billOfMaterials(root) {
  const { name, version, packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  const shipped = shippedPlaces(root, packages);
  const places = Object.keys(packages).filter((place) => shipped.has(place));
  const purl = (place) => `pkg:npm/${nameAt(place).replace('@', '%40')}@${packages[place].version}`;
  const reference = (place) => (place === '' ? `${name}@${version}` : `${purl(place)}#${place}`);
  const dependsOn = (place) => {
    const { dependencies, devDependencies, optionalDependencies, peerDependencies } = packages[place];
    // Only the project itself has devDependencies; what is not bundled is left out below.
    const wantedNames = { ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies };
    const found = Object.keys(wantedNames).flatMap((wanted) => resolve(packages, place, wanted) ?? []);
    return [...new Set(found)].filter((each) => shipped.has(each)).map(reference);
  };
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { type: 'application', 'bom-ref': reference(''), name, version } },
    components: places.map((place) => ({
      type: 'library',
      'bom-ref': reference(place),
      name: nameAt(place),
      version: packages[place].version,
      scope: packages[place].optional ? 'optional' : 'required',
      hashes: [hashOf(packages[place])],
      ...licencesOf(packages[place]),
      purl: purl(place),
    })),
    dependencies: ['', ...places].map((place) => ({ ref: reference(place), dependsOn: dependsOn(place) })),
  };
}

/** Writes it into a file. @returns the exit code */
export function sbom(root, [file = 'sbom.cdx.json']) {
  const bill = billOfMaterials(root);
  writeFileSync(file, `${JSON.stringify(bill, null, 2)}\n`);
  console.log(`${file}: ${bill.components.length} packages of production (CycloneDX ${bill.specVersion})`);
  return 0;
}
