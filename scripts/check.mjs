// npm run check: everything that can be said about the code without running it. It shows all faults, not only the first.
import { exec } from 'node:child_process';
import path from 'node:path';
import { findStaleClientTypes } from './check-client-schema.mjs';
import { findConsoleExcess } from './check-console-size.mjs';
import { findSchemaDrift } from './check-schema.mjs';
import { migratedDatabase } from './migrated-database.mjs';

const root = path.resolve(import.meta.dirname, '..');

/** Programs, as npm finds them. Each says what is wrong and ends with another code than 0. */
const PROGRAMS = {
  types: 'tsc --noEmit --pretty false -p tsconfig.json',
  'types of the console': 'tsc --noEmit --pretty false -p console/tsconfig.json',
  'format, lint and import cycles': 'biome check --error-on-warnings .',
  'import rules and linear patterns': 'eslint --max-warnings=0 --cache --cache-location .data/eslint .',
  'licences of what is shipped': 'npm run --silent licences',
};

/** Each resolves to a complaint, which is empty if there is none. */
const checks = {
  ...Object.fromEntries(Object.entries(PROGRAMS).map(([name, line]) => [name, () => complaintOf(line)])),
  "the console's first page is small": async () => findConsoleExcess(root).join('\n'),
  'the migrations give exactly schema.prisma': async () => findSchemaDrift((await database).url),
  'the types of the client are those of the API': async () => findStaleClientTypes((await database).url),
};

function complaintOf(line) {
  const PATH = `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env.PATH}`;
  const options = { cwd: root, env: { ...process.env, PATH, FORCE_COLOR: '0' }, maxBuffer: Number.POSITIVE_INFINITY };
  return new Promise((resolve) => {
    exec(line, options, (error, stdout, stderr) => {
      resolve(error ? `${stdout}${stderr}`.trim() || error.message : '');
    });
  });
}

/** Resolves to the line of a check and its complaint. */
async function outcomeOf([name, run]) {
  const start = Date.now();
  const complaint = await run().catch((error) => error.message);
  const line = `${complaint ? '✗' : '✓'} ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`;
  return { complaint, text: complaint ? `${line}\n${complaint.replace(/^/gm, '    ')}` : line };
}

// All run at the same time, because one of them takes longer than all others together.
const database = migratedDatabase();
database.catch(() => {}); // reported by the checks that use it
let faults = 0;
for (const outcome of Object.entries(checks).map(outcomeOf)) {
  const { complaint, text } = await outcome;
  console.log(text.replaceAll(`${root}${path.sep}`, ''));
  if (complaint) faults += 1;
}
await database.then(({ remove }) => remove()).catch(() => {});
console.log(faults === 0 ? 'All checks hold.' : `${faults} of ${Object.keys(checks).length} checks fail.`);
process.exitCode = faults === 0 ? 0 : 1;
