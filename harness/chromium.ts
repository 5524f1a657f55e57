import { existsSync } from 'node:fs';

/** Its paths on Debian and other systems. */
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** The browser for tests of the console; undefined if none is installed. */
export const findChromium = (): string | undefined => PLACES.find((place) => existsSync(place));
