import fs from 'node:fs';
import path from 'node:path';

const POLL_INTERVAL_MS = 200;

/** Runs `work` while no other process does, because two `npm ci` in one folder break each other. @param file their lock */
export function takeTurn(file, work) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  for (let isWaiting = false; !take(file); isWaiting = true) {
    if (!isWaiting)
      console.error(`Waiting for another command that sets up this clone; if none does, delete ${file} …`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_INTERVAL_MS);
  }
  process.once('exit', () => fs.rmSync(file, { force: true }));
  work();
}

/** True if the lock is taken. The lock of a process that has ended is removed for the next attempt. */
function take(file) {
  try {
    fs.writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  if (hasEnded(file)) fs.rmSync(file, { force: true });
  return false;
}

function hasEnded(file) {
  try {
    const holder = Number(fs.readFileSync(file, 'utf8'));
    if (holder === process.pid) return true; // left by an earlier process with this number
    process.kill(holder, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}
