// npm run check: everything that can be said about the code without running it. All faults are shown, not the first.
import path from 'node:path';
import { findConsoleExcess } from './check-console-size.mjs';
import { findCycles } from './check-cycles.mjs';
import { findLicenceFaults } from './check-licences.mjs';
import { findLockfileFaults } from './check-lockfile.mjs';
import { findSlowPatterns } from './check-patterns.mjs';
import { checkDrift } from './migration/command.mjs';
import { nodeModule, quietly, root } from './processes.mjs';

const program =
  (name, command, ...args) =>
  async () => {
    const { code, output } = await quietly(process.execPath, [nodeModule(name, command), ...args], {
      FORCE_COLOR: '0',
    });
    return code === 0 ? '' : output || `exit code ${code}`;
  };

const checks = {
  types: program('@typescript/native', 'tsc', '--noEmit', '--pretty', 'false', '-p', 'tsconfig.json'),
  'types of the console': program(
    '@typescript/native',
    'tsc',
    '--noEmit',
    '--pretty',
    'false',
    '-p',
    'console/tsconfig.json',
  ),
  'format and lint': program('@biomejs/biome', 'biome', 'check', '--error-on-warnings', '.'),
  'import rules': program('eslint', 'eslint', '--max-warnings=0', '.'),
  'no circular imports': async () =>
    findCycles(root)
      .map((cycle) => cycle.join(' → '))
      .join('\n'),
  'every pattern takes linear time': async () => findSlowPatterns(root).join('\n'),
  "the console's first page is small": async () => findConsoleExcess(root).join('\n'),
  'every package has its checksum': async () => findLockfileFaults(root).join('\n'),
  'every licence is allowed': async () => findLicenceFaults(root).join('\n'),
  'migrations give exactly schema.prisma': checkDrift,
};

/** Runs every check, one after the other, and prints each with its time. Resolves to the exit code. */
export async function check() {
  let faults = 0;
  for (const [name, run] of Object.entries(checks)) {
    const start = Date.now();
    const complaint = await run().catch((error) => error.message);
    console.log(`${complaint ? '✗' : '✓'} ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
    if (!complaint) continue;
    faults += 1;
    console.log(complaint.replaceAll(`${root}${path.sep}`, '').replace(/^/gm, '    '));
  }
  console.log(faults === 0 ? 'All checks hold.' : `${faults} of ${Object.keys(checks).length} checks fail.`);
  return faults === 0 ? 0 : 1;
}
