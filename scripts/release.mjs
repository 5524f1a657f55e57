// npm run release: everything that a release consists of, from a clean clone, in dist/release/.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** The contents of the service's package: those of the image, and the pages. */
const PACKED = [
  ...['bin', 'dist/src', 'dist/console', 'prisma/migrations', 'prisma/roles.sql'],
  ...['.env.example', 'CHANGELOG.md', 'README.md', 'docs'],
];

/** The exit code of a release that lacks its image because Docker is not available. */
const WITHOUT_IMAGE = 3;

process.chdir(path.resolve(import.meta.dirname, '..'));
const target = 'dist/release';
const folder = '.data/production';
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

/** Runs a program. @returns what it printed */
function run(command, ...args) {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}

/** One line for each reason why these sources cannot be released. */
function* faults() {
  const changed = run('git', 'status', '--porcelain');
  const sections = readFileSync('CHANGELOG.md', 'utf8').split('\n## ');
  const unreleased = sections.find((section) => section.startsWith('Unreleased\n')) ?? 'Unreleased';
  if (changed) yield `The working tree has changes; commit or remove them:\n${changed}`;
  if (!sections.some((section) => section.startsWith(`${version} — `)))
    yield `CHANGELOG.md has no section for ${version}. Add "## ${version} — " and the date.`;
  if (unreleased.trim() !== 'Unreleased') yield `CHANGELOG.md has entries under Unreleased. Move them to ${version}.`;
}

function build(revision) {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  run('npm', 'run', '--silent', 'sbom'); // writes the manifests of the package into the folder, too
  cpSync('sbom.cdx.json', `${target}/notebridge-${version}.cdx.json`);
  for (const name of PACKED) cpSync(name, path.join(folder, name), { recursive: true });
  run('npm', 'pack', folder, '--pack-destination', target, '--loglevel=error');
  cpSync(`dist/notebridge-client-${version}.tgz`, `${target}/notebridge-client-${version}.tgz`);
  if (spawnSync('docker', ['version']).status !== 0) {
    console.error('✗ The image is missing, because Docker is not available.');
    process.exitCode = WITHOUT_IMAGE;
    return;
  }
  const tag = `notebridge:${version}`;
  run('docker', 'build', '--build-arg', `REVISION=${revision}`, '--tag', tag, '.');
  run('docker', 'image', 'save', '--output', `${target}/notebridge-${version}-image.tar`, tag);
}

function checksum(name) {
  const sum = createHash('sha256').update(readFileSync(path.join(target, name)));
  return `${sum.digest('hex')}  ${name}\n`;
}

const reasons = [...faults()];
for (const reason of reasons) console.error(`✗ ${reason}`);
if (reasons.length > 0) process.exitCode = 1;
else {
  const revision = run('git', 'rev-parse', 'HEAD');
  build(revision);
  const sums = readdirSync(target).sort().map(checksum).join('');
  writeFileSync(path.join(target, 'SHA256SUMS'), sums);
  console.log(`notebridge ${version} (${revision}) in ${target}/:\n${sums}`);
}
