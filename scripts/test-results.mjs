// What Jest wrote as JSON, read for the proof: which suites failed, or how the tests of several runs add up.
import { existsSync, readFileSync } from 'node:fs';

/** Suites of these files by their path; a later run of one stands for an earlier. */
function suites(files) {
  const read = files.filter((file) => existsSync(file)).map((file) => JSON.parse(readFileSync(file, 'utf8')));
  return new Map(read.flatMap(({ testResults }) => testResults.map((suite) => [suite.name, suite])));
}

const count = (tests, status) => tests.filter((test) => test.status === status).length;

/** A suite that could not even start has no tests, and counts as one that failed. */
function sum(files) {
  const found = [...suites(files).values()];
  const tests = found.flatMap(({ assertionResults }) => assertionResults);
  const unable = found.filter(({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0);
  const failed = found.length === 0 ? 1 : count(tests, 'failed') + unable.length;
  return `${count(tests, 'passed')} passed, ${failed} failed`;
}

const failed = (files) =>
  [...suites(files).values()].filter(({ status }) => status === 'failed').map(({ name }) => name);

const [question, ...files] = process.argv.slice(2);
console.log(question === 'failed' ? failed(files).join('\n') : sum(files));
