import { HELD_EMAILS, HELD_IDS, isNotIn } from '../../people/store/legal-hold.js';

/** SQL condition that a row belongs to no client under a legal hold, neither by its id nor by its email. */
export const IS_NO_HELD_ROW = (row: string): string =>
  `${isNotIn(`${row}.external_id`, HELD_IDS)} AND ${isNotIn(`${row}.email_fingerprint`, HELD_EMAILS)}`;
