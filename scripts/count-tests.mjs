// The last line of a proof: what Jest counted, read from its JSON. A suite that could not even start counts as failed.
import { existsSync, readFileSync } from 'node:fs';

const [file] = process.argv.slice(2);
const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites } = existsSync(file)
  ? JSON.parse(readFileSync(file, 'utf8'))
  : { numPassedTests: 0, numFailedTests: 1, numRuntimeErrorTestSuites: 0 };
console.log(`${numPassedTests} passed, ${numFailedTests + numRuntimeErrorTestSuites} failed`);
