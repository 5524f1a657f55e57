// npm run check: everything that can be said about the code without running it. It shows all faults, not only the first.
import path from 'node:path';
import { findStaleClientTypes } from './check-client-schema.mjs';
import { findConsoleExcess } from './check-console-size.mjs';
import { findPackageFaults } from './check-packages.mjs';
import { findSchemaDrift } from './check-schema.mjs';
import { findPlainWordFaults } from './check-words.mjs';
import { findChangedMigrations } from './migration-checksums.mjs';
import { nodeModule, quietly, root } from './processes.mjs';

const program =
  (name, command, ...args) =>
  async () => {
    const { code, output } = await quietly(process.execPath, [nodeModule(name, command), ...args], {
      FORCE_COLOR: '0',
    });
    return code === 0 ? '' : output || `exit code ${code}`;
  };
const typesOf = (project) =>
  program('@typescript/native', 'tsc', '--noEmit', '--pretty', 'false', '-p', `${project}/tsconfig.json`);

/** Each resolves to a complaint, which is empty if there is none. */
const checks = {
  types: typesOf('.'),
  'types of the console': typesOf('console'),
  'format, lint and import cycles': program('@biomejs/biome', 'biome', 'check', '--error-on-warnings', '.'),
  'import rules and linear patterns': program(
    'eslint',
    'eslint',
    '--max-warnings=0',
    '--cache',
    '--cache-location',
    '.data/eslint',
    '.',
  ),
  'plain words': async () => findPlainWordFaults(root).join('\n'),
  "the console's first page is small": async () => findConsoleExcess(root).join('\n'),
  'every package has its checksum and an allowed licence': async () => findPackageFaults(root).join('\n'),
  'the types of the client are those of the API': findStaleClientTypes,
  'released migrations are unchanged': async () => findChangedMigrations(root).join('\n'),
  'the migrations give exactly schema.prisma': findSchemaDrift,
};

/** Runs the checks one after the other, and prints each with its time. Resolves to the exit code. */
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
