// Some registry mirrors do not carry the builds of other platforms. npm then writes a lockfile without them, and
// `npm ci` refuses it ("Missing: @biomejs/cli-win32-x64@ from lock file"). This adds the missing optional entries
// (version, os, cpu, libc: all `npm ci` needs to skip them) and drops what npm itself calls extraneous, and the builds
// that nobody runs. Run it after every change of package-lock.json.
import { readFileSync, writeFileSync } from 'node:fs';

const file = new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(file, 'utf8'));
const OS = /(?:^|[-/_])(aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32)(?=[-_.]|$)/;
const CPU = /(?:^|[-/_])(arm64|arm|x64|ia32|loong64|mips64el|ppc64|riscv64|s390x|wasm32)(?=[-_.]|$)/;

// The check of patterns runs recheck as plain JavaScript; its Java and native builds are 50 MB.
const UNUSED = /^recheck-(jar|linux|macos|windows)/;
const { recheck } = Object.fromEntries(Object.entries(lock.packages).map(([dir, pkg]) => [dir.slice(13), pkg]));
if (recheck) delete recheck.optionalDependencies;
for (const dir of Object.keys(lock.packages)) if (UNUSED.test(dir.slice(13))) delete lock.packages[dir];

for (const [dir, pkg] of Object.entries(lock.packages)) if (pkg.extraneous) delete lock.packages[dir];

const added = {};
for (const [dir, pkg] of Object.entries(lock.packages)) {
  for (const [name, range] of Object.entries(pkg.optionalDependencies ?? {})) {
    const places = dir.split('/node_modules/').map((_, i, a) => a.slice(0, a.length - i).join('/node_modules/'));
    if ([...places.map((p) => `${p}/node_modules/${name}`), `node_modules/${name}`].some((p) => lock.packages[p]))
      continue;
    const os = OS.exec(name)?.[1];
    const cpu = CPU.exec(name)?.[1];
    if (!os && !cpu) continue;
    const version = range.replace(/^npm:.*@/, '').replace(/^[\^~]/, '');
    if (!/^\d+\.\d+\.\d+/.test(version)) continue;
    const at = `node_modules/${name}`;
    added[at] = {
      version,
      ...(cpu && { cpu: [cpu] }),
      ...(pkg.dev && { dev: true }),
      ...(pkg.devOptional && { devOptional: true }),
      ...(/musl/.test(name) && { libc: ['musl'] }),
      optional: true,
      ...(os && { os: [os] }),
    };
  }
}
const all = { ...lock.packages, ...added };
lock.packages = Object.fromEntries(
  Object.keys(all)
    .sort()
    .map((k) => [k, all[k]]),
);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${Object.keys(added).length} entries added`);
