import { existsSync } from 'node:fs';

/** Where Debian, and others, put it. */
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** The browser in which the console is tried; undefined where none is installed. */
export const findChromium = (): string | undefined => PLACES.find((place) => existsSync(place));
