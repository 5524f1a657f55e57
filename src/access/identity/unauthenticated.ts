import { Problem } from '../../http/problem/problem.js';

/** The challenge of RFC 6750 §3: without an error code for a caller who showed no key at all. */
export function unauthenticated(shown: boolean): Problem {
  const detail = shown
    ? 'The key is unknown, expired or revoked. Ask an administrator for a new key.'
    : 'Send a key as Authorization: Bearer <key>.';
  return new Problem('unauthenticated', detail, {
    headers: { 'www-authenticate': `Bearer realm="notebridge"${shown ? ', error="invalid_token"' : ''}` },
  });
}
