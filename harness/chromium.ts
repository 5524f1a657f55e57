import { existsSync } from 'node:fs';

/** Where Debian and others install it. */
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** The browser for tests of the console; undefined if none is installed. */
export const findChromium = (): string | undefined => PLACES.find((place) => existsSync(place));
