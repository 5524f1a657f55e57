import type { PERSON_CODES } from '../words/person-words.js';

/** The code of people and requests that wait for the release of a hold. */
export const HELD = 'held' satisfies keyof typeof PERSON_CODES;
