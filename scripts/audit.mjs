// npm run audit: known weaknesses of the packages that are shipped, among them the console's. Exit code 1 for a grave
// one, and 2 if the registry gives no advisories at all, because then nothing is known.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { npm, root } from './processes.mjs';
import { shippedPlaces } from './shipped-packages.mjs';

const GRAVE = ['high', 'critical'];

/** A package with a critical advisory since 2020: a registry that knows none for it knows none for any. */
const WITNESS = { name: 'minimist', version: '0.0.8' };

/** Runs `npm audit` on a folder. @returns its report; without `vulnerabilities` if the registry has not answered. */
async function ask(folder) {
  const { output } = await npm('audit', '--json', '--loglevel=silent', '--prefix', folder);
  try {
    return JSON.parse(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1));
  } catch {
    return {};
  }
}

/** True if the registry knows the advisory of {@link WITNESS}. */
async function hasAdvisories() {
  const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-audit-'));
  try {
    const { name, version } = WITNESS;
    const own = { name: 'witness', version: '1.0.0', dependencies: { [name]: version } };
    const packages = { '': own, [`node_modules/${name}`]: { version } };
    writeFileSync(path.join(folder, 'package.json'), JSON.stringify(own));
    writeFileSync(path.join(folder, 'package-lock.json'), JSON.stringify({ ...own, lockfileVersion: 3, packages }));
    return (await ask(folder)).vulnerabilities?.[name] !== undefined;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Asks, and prints what is known. @returns the exit code */
export async function audit() {
  const { vulnerabilities, statusCode } = await ask(root);
  if (!vulnerabilities || !(await hasAdvisories())) {
    const why = vulnerabilities ? 'it knows none for any package' : (statusCode ?? 'not reached');
    console.log(
      `✗ advisories: unknown, because the registry gives none (${why}). Ask another: npm_config_registry=URL.`,
    );
    return 2;
  }
  const shipped = shippedPlaces(root, JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).packages);
  const known = Object.values(vulnerabilities).filter(({ nodes }) => nodes.some((place) => shipped.has(place)));
  const grave = known.filter(({ severity }) => GRAVE.includes(severity));
  for (const { name, severity, range, via } of grave) {
    const [cause] = via.filter((each) => typeof each === 'object');
    console.log(`✗ ${name} ${range}: ${severity}${cause ? `, ${cause.title} (${cause.url})` : ''}`);
  }
  const less = known.length - grave.length;
  console.log(`${grave.length === 0 ? '✓' : '✗'} advisories: ${grave.length} grave, ${less} lesser`);
  return grave.length === 0 ? 0 : 1;
}
