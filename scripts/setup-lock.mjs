import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Runs `work` while no other command of this clone sets anything up. The lock of a killed one is taken over. */
export async function withSetupLock(file, work) {
  mkdirSync(path.dirname(file), { recursive: true });
  let waited = false;
  while (!take(file)) {
    if (!waited) console.error('Another command is setting up this clone: waiting for it …');
    waited = true;
    await delay(200);
  }
  const letGo = () => rmSync(file, { force: true });
  process.once('exit', letGo);
  try {
    return await work();
  } finally {
    process.off('exit', letGo);
    letGo();
  }
}

function take(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    if (!isHeld(file)) rmSync(file, { force: true });
    return false;
  }
}

function isHeld(file) {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    if (pid > 0) process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
