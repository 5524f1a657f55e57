import { KeyedHashes } from './keyed-hashes.js';

/**
 * Keyed hashes by FINGERPRINT_KEYS, which show what is equal: emails, profiles, notes, URLs and requests. While a key is
 * replaced, processes may have different first keys, so lookups ask for all accepted keys.
 */
export class Fingerprints extends KeyedHashes {}
