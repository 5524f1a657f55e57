import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * What tells a running process from a later one that was given the same number: its start time, as the system counts
 * it. Null when no such process runs; a zombie (dead, but not yet collected by its parent) counts as gone.
 */
export function processIdentity(pid: number): string | null {
  if (process.platform !== 'linux') return ps(pid, 'lstart');
  try {
    // proc(5): "pid (name) state …"; the name may hold spaces and brackets, so count from the last bracket on.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

/** Whether `pid` runs and was started with `argument` on its command line. */
export function runsWithArgument(pid: number, argument: string): boolean {
  if (processIdentity(pid) === null) return false;
  if (process.platform !== 'linux') return ps(pid, 'command')?.includes(argument) ?? false;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(argument);
  } catch {
    return false;
  }
}

function ps(pid: number, column: 'lstart' | 'command'): string | null {
  try {
    const line = execFileSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' });
    return line.trim() || null;
  } catch {
    return null;
  }
}
