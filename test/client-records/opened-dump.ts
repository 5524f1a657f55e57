import { createDecipheriv } from 'node:crypto';
import { dumpOf } from '../../harness/database-dump.js';

/** The header of an encrypted value with the key of the tests, in hex and in base64. */
const SEALED = /\\\\?x(01026b31[0-9a-f]{56,})|"(AQJrM[A-Za-z0-9+/]{36,}=*)"/g;
/** The data key of `testSettings`. */
const KEY = Buffer.alloc(32, 7);
const HEADER_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Dumps a test database, with every encrypted value decrypted. */
export async function openedDumpOf(url: string): Promise<string> {
  const dump = await dumpOf(url);
  const sealed = [...dump.replaceAll('""', '"').matchAll(SEALED)].map(([, hex, base64]) =>
    hex ? Buffer.from(hex, 'hex') : Buffer.from(base64 ?? '', 'base64'),
  );
  return [dump, ...sealed.map(opened)].join('\n');
}

/** Decrypts only with the counter mode of GCM (NIST SP 800-38D §7.1), without the place that binds the value. */
function opened(sealed: Buffer): string {
  const start = HEADER_BYTES + NONCE_BYTES;
  const counter = Buffer.concat([sealed.subarray(HEADER_BYTES, start), Buffer.from([0, 0, 0, 2])]);
  return createDecipheriv('aes-256-ctr', KEY, counter).update(sealed.subarray(start, -TAG_BYTES)).toString('utf8');
}
