import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import { checkDataFolder } from '../../database/data-folder.js';
import { byteSize } from '../output/duration.js';
import type { Check, Finding } from './finding.js';

/** Node below this can't load the packages (Nest 12). */
const OLDEST_NODE = [20, 19] as const;

/** Bytes; PostgreSQL stops committing when its disk is full. */
const LEAST_FREE_BYTES = 1024 ** 3;

/**
 * The versions and the disk of this machine.
 *
 * @param dataDir where the embedded database keeps its data
 * @param isUsed whether there is one
 */
export function machineChecks(dataDir: string, isUsed: boolean): Check[] {
  return [
    { name: 'Node', look: () => nodeFinding(process.versions.node) },
    { name: 'Disk', look: () => diskFinding(path.resolve(dataDir), isUsed) },
  ];
}

/** Whether a version of Node will do. */
export function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isGood = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
  if (isGood) return { state: 'ok', what: `${version} on ${process.platform} ${process.arch}` };
  return {
    state: 'faulty',
    what: `${version} is too old`,
    advice: [`Install Node ${OLDEST_NODE.join('.')} or later.`],
  };
}

async function diskFinding(folder: string, isUsed: boolean): Promise<Finding> {
  if (isUsed) checkDataFolder(folder);
  let place = folder;
  while (!existsSync(place)) place = path.dirname(place);
  const { bavail, bsize } = await statfs(place);
  const what = `${byteSize(bavail * bsize)} free at ${place}`;
  if (bavail * bsize >= LEAST_FREE_BYTES) return { state: 'ok', what };
  return { state: 'faulty', what, advice: ['Make room: a database whose disk is full takes no webhooks.'] };
}
