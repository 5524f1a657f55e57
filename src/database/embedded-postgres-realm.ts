import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import os from 'node:os';

/**
 * What the processes that see each other's numbers have in common, and no others: one start of one system and, on
 * Linux, one process namespace (a container has its own). Not the host's name, which may change while all run on.
 */
export function processRealm(): string {
  if (process.platform !== 'linux') {
    return orHostname(() =>
      execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8', stdio: 'pipe' }),
    );
  }
  const boot = orHostname(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
  return `${boot} ${orHostname(() => readlinkSync('/proc/self/ns/pid'))}`;
}

function orHostname(read: () => string): string {
  try {
    return read().trim() || os.hostname();
  } catch {
    return os.hostname();
  }
}
