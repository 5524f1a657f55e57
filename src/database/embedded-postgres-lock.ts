import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { processIdentity } from './embedded-postgres-process.js';

const POLL_MS = 25;
/** A takeover lasts microseconds; a guard older than this was left by a process killed in the middle of one. */
const GUARD_STALE_MS = 5_000;

/**
 * Runs `work` while this process alone, among all on this machine, holds `file`. Waits for a holder that lives, and
 * takes the lock over from one that died, however it died.
 */
export async function withFileLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const mine = `${process.pid} ${processIdentity(process.pid)} ${randomUUID()}`;
  while (!takeLock(file, mine)) {
    removeWhenStale(file);
    await delay(POLL_MS);
  }
  try {
    return await work();
  } finally {
    if (readOrNull(file) === mine) rmSync(file, { force: true });
  }
}

/** A hard link appears with its content or not at all, so nobody ever reads a half-written lock. */
function takeLock(file: string, content: string): boolean {
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, content, { mode: 0o644 });
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Of several processes that find the same dead holder, one at a time may look again and remove it. */
function removeWhenStale(file: string): void {
  if (!isStale(readOrNull(file))) return;
  const guard = `${file}.takeover`;
  if (!takeLock(guard, String(process.pid))) {
    const age = Date.now() - (statSync(guard, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > GUARD_STALE_MS) rmSync(guard, { force: true });
    return;
  }
  try {
    if (isStale(readOrNull(file))) rmSync(file, { force: true });
  } finally {
    rmSync(guard, { force: true });
  }
}

function isStale(content: string | null): boolean {
  if (content === null) return false;
  const [pid, identity] = content.split(' ');
  return processIdentity(Number(pid)) !== identity;
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
