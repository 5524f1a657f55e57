// npm run release: everything that a release consists of, from a clean clone, in dist/release/.
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { recordMigrations, unreleasedMigrations } from './migration-checksums.mjs';
import { npm, quietly } from './processes.mjs';
import { billOfMaterials } from './sbom.mjs';
import { Fault } from './setup.mjs';

/** The contents of the service's package: those of the image, and the pages. */
const PACKED = [
  'bin',
  'dist/src',
  'dist/console',
  'prisma/migrations',
  'prisma/roles.sql',
  '.env.example',
  'CHANGELOG.md',
  'README.md',
  'docs',
];

/** The exit code of a release that lacks its image because Docker is not available. */
const WITHOUT_IMAGE = 3;

const json = (...place) => JSON.parse(readFileSync(path.join(...place), 'utf8'));
const writeJson = (value, ...place) => writeFileSync(path.join(...place), `${JSON.stringify(value, null, 2)}\n`);

/** The output of a program. @throws {Fault} with its output if it fails */
function outputOf(what, { code, output }) {
  if (code !== 0) throw new Fault(`${what} failed:\n${output}`);
  return output;
}

/** One line for each reason why the sources at `root` cannot be released. @param changed lines of `git status` */
export function findReleaseFaults(root, changed) {
  const { version } = json(root, 'package.json');
  const sections = readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8').split('\n## ');
  const unreleased = sections.find((section) => section.startsWith('Unreleased\n')) ?? 'Unreleased';
  const faults = [];
  if (changed) faults.push(`The working tree has changes; commit or remove them:\n${changed}`);
  if (!sections.some((section) => section.startsWith(`${version} — `)))
    faults.push(`CHANGELOG.md has no section for ${version}. Add "## ${version} — " and the date.`);
  if (unreleased.trim() !== 'Unreleased')
    faults.push(`CHANGELOG.md has entries under Unreleased. Move them to ${version}.`);
  const migrations = unreleasedMigrations(root);
  if (migrations.length > 0)
    faults.push(
      `No checksum is recorded for ${migrations.join(', ')}. Run npm run release -- --record-migrations, and commit it.`,
    );
  return faults;
}

/** The manifest of the package: that of the clone without what only development needs. */
function manifestOf({ scripts, devDependencies, allowScripts, overrides, ...manifest }) {
  // Nested ones are of tools, and refer to other tools.
  const shipped = Object.entries(overrides).filter(([, version]) => typeof version === 'string');
  return { ...manifest, overrides: Object.fromEntries(shipped) };
}

/** The lockfile without tools. `npm ci` in the unpacked package reads it, and so installs the tested versions. */
function shrinkwrapOf({ packages, ...lockfile }) {
  const { devDependencies, ...own } = packages[''];
  const shipped = Object.entries(packages).filter(([place, { dev }]) => place !== '' && !dev);
  return { ...lockfile, packages: { '': own, ...Object.fromEntries(shipped) } };
}

/** Packs the service into `target`. */
async function packService(root, target) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-package-'));
  try {
    const isPacked = (file) => path.basename(file) !== '.made-from';
    for (const name of PACKED)
      cpSync(path.join(root, name), path.join(folder, name), { recursive: true, filter: isPacked });
    writeJson(manifestOf(json(root, 'package.json')), folder, 'package.json');
    writeJson(shrinkwrapOf(json(root, 'package-lock.json')), folder, 'npm-shrinkwrap.json');
    outputOf('npm pack', await npm('pack', folder, '--pack-destination', target, '--loglevel=error'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Builds the image and saves it in `target`. Resolves to false if Docker is not available. */
async function buildImage(target, version, revision) {
  if ((await quietly('docker', ['version'])).code !== 0) return false;
  const tag = `notebridge:${version}`;
  const build = ['build', '--build-arg', `REVISION=${revision}`, '--tag', tag, '.'];
  outputOf('docker build', await quietly('docker', build));
  const file = path.join(target, `notebridge-${version}-image.tar`);
  outputOf('docker image save', await quietly('docker', ['image', 'save', '--output', file, tag]));
  return true;
}

/** Builds everything that a release of the clone at `root` consists of. Resolves to the exit code. */
export async function release(root, args) {
  if (args.includes('--record-migrations')) {
    console.log(`Recorded: ${recordMigrations(root).join(', ') || 'nothing, every migration has its checksum'}`);
    return 0;
  }
  const git = async (...words) => outputOf('git', await quietly('git', ['-C', root, ...words]));
  const faults = findReleaseFaults(root, await git('status', '--porcelain'));
  if (faults.length > 0) throw new Fault(faults.join('\n✗ '));
  const { version } = json(root, 'package.json');
  const revision = await git('rev-parse', 'HEAD');
  const target = path.join(root, 'dist/release');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  await packService(root, target);
  const client = `notebridge-client-${version}.tgz`;
  cpSync(path.join(root, 'dist', client), path.join(target, client));
  writeJson(billOfMaterials(root), target, `notebridge-${version}.cdx.json`);
  const hasImage = args.includes('--without-image') || (await buildImage(target, version, revision));
  console.log(`notebridge ${version} (${revision}) in ${path.relative(root, target)}/:\n${sealed(target)}`);
  if (hasImage) return 0;
  console.error('✗ The image is missing, because Docker is not available. Start it, or pass --without-image.');
  return WITHOUT_IMAGE;
}

/** Writes the checksums of the files in a folder. @returns a line for each file */
function sealed(folder) {
  const names = readdirSync(folder).sort();
  const sums = names.map((name) => {
    const sum = createHash('sha256')
      .update(readFileSync(path.join(folder, name)))
      .digest('hex');
    return `${sum}  ${name}\n`;
  });
  writeFileSync(path.join(folder, 'SHA256SUMS'), sums.join(''));
  const size = (name) => `${(statSync(path.join(folder, name)).size / 1024 / 1024).toFixed(1)} MiB`;
  return [...names, 'SHA256SUMS'].map((name) => `  ${name} (${size(name)})`).join('\n');
}
