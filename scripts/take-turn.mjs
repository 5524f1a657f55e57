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
  const holder = holderOf(file);
  if (holder !== undefined && hasEnded(Number(holder))) remove(file, holder);
  return false;
}

/** Another process may have removed the lock and taken its own meanwhile, which is put back. */
function remove(file, holder) {
  const moved = `${file}.${process.pid}`;
  try {
    fs.renameSync(file, moved);
    if (holderOf(moved) !== holder) fs.linkSync(moved, file);
    fs.rmSync(moved);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
}

function holderOf(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined; // it was released meanwhile
  }
}

/** True for the own number, too: an earlier process had it. */
function hasEnded(holder) {
  try {
    if (holder !== process.pid) process.kill(holder, 0);
    return holder === process.pid;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}
