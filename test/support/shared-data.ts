import { existsSync } from 'node:fs';
import path from 'node:path';

const place = path.resolve(__dirname, '../../../shared/data');

/** The folder of the large sample exports next to some clones, or undefined. */
const sharedData: string | undefined = existsSync(place) ? place : undefined;

/** Declares a suite that reads the sample exports. If they are missing, it is skipped with a message. */
export function describeWithSharedData(name: string, suite: (folder: string) => void): void {
  if (sharedData) {
    describe(name, () => suite(sharedData));
    return;
  }
  process.stderr.write(`\n*** SKIPPED: "${name}", because ${place} is missing.\n`);
  describe.skip(`${name} (needs ${place})`, () => suite(place));
}
