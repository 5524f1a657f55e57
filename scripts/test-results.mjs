// Adds up what Jest wrote as JSON. A suite that could not even start has no tests, and counts as one that failed.
import { existsSync, readFileSync } from 'node:fs';

const [file] = process.argv.slice(2);
const suites = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).testResults : [];
const tests = suites.flatMap(({ assertionResults }) => assertionResults);
const count = (status) => tests.filter((test) => test.status === status).length;
const unable = suites.filter(({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0);
const failed = suites.length === 0 ? 1 : count('failed') + unable.length;
console.log(`${count('passed')} passed, ${failed} failed`);
