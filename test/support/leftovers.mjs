// A test run that is killed leaves its servers behind. The next run finds them, stops them and clears up.
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

const { processIdentity } = createRequire(import.meta.url)('../../dist/harness/process-identity.js');

const PREFIX = 'notebridge-test-';

const noteProcess = (file, pid) => writeFileSync(file, JSON.stringify({ pid, identity: processIdentity(pid) }));

/** The process that a note names, if it still runs. */
function notedProcess(file) {
  const { pid, identity } = JSON.parse(readFileSync(file, 'utf8'));
  return identity !== null && processIdentity(pid) === identity ? pid : null;
}

/** The temporary folder of this run, which the user that PostgreSQL runs as may pass through. */
export function makeRunFolder() {
  const folder = mkdtempSync(path.join(os.tmpdir(), PREFIX));
  chmodSync(folder, 0o711);
  noteProcess(path.join(folder, 'harness'), process.pid);
  return folder;
}

/** Notes in this run's folder that the process `pid` is to end with the run. PostgreSQL does by itself. */
export function remember(folder, pid) {
  noteProcess(path.join(folder, `${pid}.server`), pid);
}

/** Stops the servers and removes the folders of every run whose harness is no more. */
export function sweep() {
  for (const name of readdirSync(os.tmpdir()).filter((entry) => entry.startsWith(PREFIX))) {
    const folder = path.join(os.tmpdir(), name);
    try {
      if (notedProcess(path.join(folder, 'harness'))) continue;
      clear(folder);
    } catch {
      // another user's, or one that is being made right now
    }
  }
}

/** Ends what a run left running and removes its folder. */
export function clear(folder) {
  for (const entry of readdirSync(folder, { recursive: true })) {
    const file = path.join(folder, entry);
    if (entry.endsWith('.server')) {
      const pid = notedProcess(file);
      if (pid) process.kill(pid, 'SIGKILL');
    }
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
