import { KeyedHashes } from './keyed-hashes.js';

/** Keyed hashes by FINGERPRINT_KEYS, which show what is equal: emails, profiles, notes, URLs and requests. */
export class Fingerprints extends KeyedHashes {}
