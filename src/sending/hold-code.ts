import { PERSON_CODES } from '../words/person-words.js';

/** The code of people and requests that wait for the release of a hold, and what it means. */
export const HELD = 'held' satisfies keyof typeof PERSON_CODES;
export const HELD_MESSAGE = String(PERSON_CODES.held.hint);
