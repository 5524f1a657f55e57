import { open, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CliFault, fileFault } from '../api/cli-fault.js';

/**
 * Writes a streamed answer to a new file that only this user can read, or to standard output. Leaves no incomplete file.
 *
 * @param file undefined: standard output
 * @throws {CliFault} if the file exists or cannot be written, and if the answer is truncated
 */
export async function saveAnswer({ body }: Response, file: string | undefined): Promise<void> {
  const content = Readable.from(body ?? []);
  if (file === undefined) {
    await pipeline(content, process.stdout, { end: false }).catch(throwTruncated);
    return;
  }
  const target = await open(file, 'wx', 0o600).catch((error: unknown) => {
    throw fileFault(file, error);
  });
  await pipeline(content, target.createWriteStream()).catch(async () => {
    await rm(file);
    throwTruncated();
  });
}

function throwTruncated(): never {
  throw new CliFault('The answer was truncated, so the output is incomplete. Run the command again.');
}
