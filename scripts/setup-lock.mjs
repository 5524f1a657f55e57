import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds without a sign of life after which a lock is taken over, and how many there are in that time. */
const SILENT_MS = 10_000;
const SIGNS = 10;
const LOOK_MS = 200;

/**
 * Runs `work` while no other command of this clone sets anything up. A lock whose holder gives no sign of life is taken
 * over: what stands in it may be the number of another process by now, or nothing at all.
 *
 * @param silentMs milliseconds without a sign of life, by the waiting process's own clock
 */
export async function withSetupLock(file, work, silentMs = SILENT_MS) {
  mkdirSync(path.dirname(file), { recursive: true });
  const mine = JSON.stringify({ host: os.hostname(), pid: process.pid, token: randomBytes(8).toString('hex') });
  await take(file, mine, silentMs);
  const alive = setInterval(() => sayAlive(file), silentMs / SIGNS);
  alive.unref();
  const letGo = () => {
    clearInterval(alive);
    if (read(file)?.text === mine) rmSync(file, { force: true });
  };
  process.once('exit', letGo);
  try {
    return await work();
  } finally {
    process.off('exit', letGo);
    letGo();
  }
}

async function take(file, mine, silentMs) {
  let seen;
  let seenAt = 0;
  for (let waited = false; !create(file, mine); waited = true) {
    const found = read(file);
    if (!found) continue;
    if (!waited) console.error(`Another command is setting up this clone: waiting for it (${file}) …`);
    if (seen?.text !== found.text || seen?.aliveAt !== found.aliveAt) [seen, seenAt] = [found, performance.now()];
    if (isDead(found.text) || performance.now() - seenAt >= silentMs) remove(file, found.text);
    else await delay(LOOK_MS);
  }
}

function create(file, mine) {
  try {
    writeFileSync(file, mine, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

function read(file) {
  try {
    return { text: readFileSync(file, 'utf8'), aliveAt: statSync(file).mtimeMs };
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  }
}

function sayAlive(file) {
  try {
    utimesSync(file, new Date(), new Date());
  } catch (error) {
    if (error.code !== 'ENOENT') throw error; // somebody took it over, or removed it
  }
}

/** Moves the lock away before it is removed: of several who wait one does it, and a new holder's lock is put back. */
function remove(file, text) {
  const aside = `${file}.${process.pid}`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return;
  }
  if (read(aside)?.text === text) rmSync(aside, { force: true });
  else renameSync(aside, file);
}

/** Whether its holder certainly ended; another machine's processes, or a container's, are not seen from here. */
function isDead(text) {
  try {
    const { host, pid } = JSON.parse(text);
    if (host !== os.hostname()) return false;
    if (pid === process.pid) return true; // this process has none yet: the number was another's
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}
