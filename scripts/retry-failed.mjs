// Runs each failed suite of a test run once more, on its own. A suite that passes then is flaky: the run passes, and its
// name is printed at the end. A suite that fails twice fails the run. Usage: retry-failed.mjs RESULTS.json EXIT_CODE, both
// of the test run.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');

/** The suites in a file that Jest wrote with --json. */
const suitesIn = (file) => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).testResults : []);

/** A suite that could not even start has no tests, and counts as one failure. */
const failuresOf = ({ status, assertionResults }) =>
  Math.max(assertionResults.filter((test) => test.status === 'failed').length, status === 'failed' ? 1 : 0);
const passesOf = ({ assertionResults }) => assertionResults.filter((test) => test.status === 'passed').length;

/** Runs one suite with the README's command. @returns its results; undefined if it could not start */
function runAgain(name) {
  const results = path.join(root, '.data', 'test-retry.json');
  const args = ['test', '--', '--runTestsByPath', name, '--json', `--outputFile=${results}`];
  spawnSync('npm', args, { cwd: root, stdio: 'inherit' });
  return suitesIn(results).find((suite) => suite.name === name);
}

const [file, exitCode] = process.argv.slice(2);
const suites = suitesIn(file);
const flaky = [];
let [passed, failed] = [0, 0];
for (const suite of suites) {
  const counted = failuresOf(suite) > 0 ? (runAgain(suite.name) ?? suite) : suite;
  if (counted !== suite && failuresOf(counted) === 0) flaky.push(path.relative(root, suite.name));
  passed += passesOf(counted);
  failed += failuresOf(counted);
}
if (suites.length === 0 || (exitCode !== '0' && suites.every((suite) => failuresOf(suite) === 0))) {
  console.log(`npm test ended with ${exitCode}, but no suite failed: see what it printed above.`);
  failed += 1;
}
if (flaky.length > 0) console.log(`flaky (failed once, passed when run again on their own):\n  ${flaky.join('\n  ')}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
