// npm run sbom: what production is made of, as CycloneDX 1.5, from the lockfile and the console's imports alone: the same
// sources give the same bytes. `npm sbom --omit dev` leaves out packages that development needs too (npm 11.19: 61 of
// 209, Nest among them), and what is bundled.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { nameAt, resolve, shippedPlaces } from './shipped-packages.mjs';

function licencesOf(root, place, locked) {
  const manifest = path.join(root, place, 'package.json');
  const licence =
    locked.license ?? (existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).license : undefined);
  if (!licence) return {};
  return { licenses: [/[ (]/.test(licence) ? { expression: licence } : { license: { id: licence } }] };
}

/** `algorithm-base64`, as npm writes it, in hexadecimal. */
function hashesOf({ integrity }) {
  const [, algorithm, base64] = /^sha(\d+)-(.*)$/.exec(integrity ?? '') ?? [];
  if (!algorithm) return {};
  return { hashes: [{ alg: `SHA-${algorithm}`, content: Buffer.from(base64, 'base64').toString('hex') }] };
}

/** The bill of materials of the project at `root`, with every package that production may load or its pages hold. */
export function billOfMaterials(root) {
  const { name, version, packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  const shipped = shippedPlaces(root, packages);
  const places = Object.keys(packages).filter((place) => shipped.has(place));
  const purl = (place) => `pkg:npm/${nameAt(place).replace('@', '%40')}@${packages[place].version}`;
  const reference = (place) => (place === '' ? `${name}@${version}` : `${purl(place)}#${place}`);
  const dependsOn = (place) => {
    const { dependencies, devDependencies, optionalDependencies, peerDependencies } = packages[place];
    // Those for development are the project's own; of these only what is bundled is left.
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
      ...hashesOf(packages[place]),
      ...licencesOf(root, place, packages[place]),
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
