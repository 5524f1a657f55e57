import { existsSync } from 'node:fs';
import path from 'node:path';

const place = path.resolve(__dirname, '../../../shared/data');

/** The folder of the large sample exports that stands beside some clones, or undefined. */
const sharedData: string | undefined = existsSync(place) ? place : undefined;

/** Declares a suite that reads the sample exports; where they are not there it is left out, and says so. */
export function describeWithSharedData(name: string, suite: (folder: string) => void): void {
  if (sharedData) {
    describe(name, () => suite(sharedData));
    return;
  }
  process.stderr.write(`\n*** LEFT OUT: "${name}", for ${place} is not there.\n`);
  describe.skip(`${name} (needs ${place})`, () => suite(place));
}
