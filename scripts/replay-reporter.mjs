// Prints, below Jest's own report of a failed test, the one command that runs it again with the same seed.
import path from 'node:path';

/** A pattern for --testNamePattern that matches this whole name. Characters that a shell might expand become dots. */
const patternOf = (name) => `^${name.replace(/[^\w ,:;-]/g, '.')}$`;

export function replayCommand(file, name, seed) {
  return `SEED=${seed} npm test -- ${file}${name ? ` -t '${patternOf(name)}'` : ''}`;
}

export default class ReplayReporter {
  onTestResult({ path: suite }, { testResults, testExecError }) {
    const file = path.relative(process.cwd(), suite);
    const failed = testResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
    for (const name of testExecError ? [''] : failed)
      process.stderr.write(`Replay: ${replayCommand(file, name, process.env.SEED)}\n`);
  }
}
