// Shows how far a test run is, so that nobody wonders whether it hangs: the number of suites at the start, and a line
// with what is done, failed and running at most every ten seconds.
import path from 'node:path';

const EVERY_MS = 10_000;

/** A duration as "4 min 12 s". */
function spoken(ms) {
  const seconds = Math.round(ms / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export default class ProgressReporter {
  #total = 0;
  #done = 0;
  #failed = 0;
  #running = new Set();
  #startedMs = Date.now();
  #timer;

  onRunStart({ numTotalTestSuites }) {
    this.#total = numTotalTestSuites;
    process.stderr.write(`Running ${this.#total} suites …\n`);
    this.#timer = setInterval(() => this.#report(), EVERY_MS).unref();
  }

  onTestFileStart({ path: file }) {
    this.#running.add(path.basename(file));
  }

  onTestFileResult({ path: file }, { numFailingTests, testExecError }) {
    this.#running.delete(path.basename(file));
    this.#done += 1;
    if (numFailingTests > 0 || testExecError) this.#failed += 1;
  }

  onRunComplete() {
    clearInterval(this.#timer);
  }

  #report() {
    const failed = this.#failed > 0 ? `, ${this.#failed} failed` : '';
    const running = [...this.#running].join(', ');
    process.stderr.write(
      `${this.#done} of ${this.#total} suites done${failed}, ${spoken(Date.now() - this.#startedMs)}; now ${running}\n`,
    );
  }
}
