import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_INTERVAL_MS = 200;

/** Runs `work` while no other process holds the lock, a file with the number of its process. */
export async function withSetupLock(file, work) {
  mkdirSync(path.dirname(file), { recursive: true });
  for (let isWaiting = false; !take(file); isWaiting = true) {
    if (!isWaiting)
      console.error(`Waiting for another command that sets up this clone; if none does, delete ${file} …`);
    await delay(POLL_INTERVAL_MS);
  }
  const release = () => rmSync(file, { force: true });
  process.once('exit', release);
  try {
    return await work();
  } finally {
    process.off('exit', release);
    release();
  }
}

/** True if the lock is taken. The lock of a process that has ended is removed for the next attempt. */
function take(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  if (hasEnded(file)) rmSync(file, { force: true });
  return false;
}

function hasEnded(file) {
  try {
    const holder = Number(readFileSync(file, 'utf8'));
    if (holder === process.pid) return true; // left by an earlier process with this number
    process.kill(holder, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}
