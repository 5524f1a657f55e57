// A killed test run leaves its servers behind. The next run finds and stops them, and removes their folders.
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

const { processIdentity } = createRequire(import.meta.url)('../../dist/harness/process-identity.js');

const PREFIX = 'notebridge-test-';

const noteProcess = (file, pid) => writeFileSync(file, JSON.stringify({ pid, identity: processIdentity(pid) }));

/** The process of a note, if it still runs. */
function notedProcess(file) {
  const { pid, identity } = JSON.parse(readFileSync(file, 'utf8'));
  return identity !== null && processIdentity(pid) === identity ? pid : null;
}

/** The temporary folder of this run, which PostgreSQL's user may traverse. */
export function makeRunFolder() {
  const folder = mkdtempSync(path.join(os.tmpdir(), PREFIX));
  chmodSync(folder, 0o711);
  noteProcess(path.join(folder, 'harness'), process.pid);
  return folder;
}

/** Notes in this run's folder that the process `pid` must end with the run. PostgreSQL ends automatically. */
export function remember(folder, pid) {
  noteProcess(path.join(folder, `${pid}.server`), pid);
}

/** Stops the servers and removes the folders of every run whose harness has ended. */
export function sweep() {
  for (const name of readdirSync(os.tmpdir()).filter((entry) => entry.startsWith(PREFIX))) {
    const folder = path.join(os.tmpdir(), name);
    try {
      if (notedProcess(path.join(folder, 'harness'))) continue;
      clear(folder);
    } catch {
      // another user's, or one that is being created
    }
  }
}

/** Ends the processes of a run and removes its folder. */
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
