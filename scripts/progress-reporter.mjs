// Prints every ten seconds how far a test run is, so that no one wonders whether it hangs.
import path from 'node:path';

const INTERVAL_MS = 10_000;

export default class ProgressReporter {
  #done = 0;
  #running = new Set();
  #timer;

  onRunStart({ numTotalTestSuites: total }) {
    const start = Date.now();
    process.stderr.write(`Running ${total} suites …\n`);
    this.#timer = setInterval(() => {
      const seconds = Math.round((Date.now() - start) / 1_000);
      process.stderr.write(
        `${this.#done} of ${total} suites done in ${seconds} s; now ${[...this.#running].join(', ')}\n`,
      );
    }, INTERVAL_MS).unref();
  }

  onTestFileStart({ path: file }) {
    this.#running.add(path.basename(file));
  }

  onTestFileResult({ path: file }) {
    this.#running.delete(path.basename(file));
    this.#done += 1;
  }

  onRunComplete() {
    clearInterval(this.#timer);
  }
}
