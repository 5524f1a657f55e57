import { requestFault } from '../../http/body/validation.js';

const MAX_HEADERS = 10;

/** A field name of RFC 9110, section 5.1. */
const NAME = /^[!#$%&'*+.^_`|~\w-]{1,64}$/;

/** Visible ASCII, with spaces between: every server reads it in the same way. */
const VALUE = /^[ -~]{1,4000}$/;

/** Names that HTTP or this service sets. */
const RESERVED =
  /^(connection|content-(encoding|length|type)|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade|user-agent|(proxy|webhook)-.*)$/;

/**
 * Reads the headers that a caller wants to be sent with each push. Faults never repeat a value, nor a name that may be one.
 *
 * @returns their values by names in lower case
 * @throws {Problem} 400 `validation`
 */
export function readHeaders(given: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries = Object.entries(given);
  const read = new Map<string, string>();
  const fault = (detail: string) => requestFault('/headers', detail);
  if (entries.length > MAX_HEADERS) throw fault(`must hold at most ${MAX_HEADERS} headers`);
  for (const [at, [spelled, value]] of entries.entries()) {
    const name = spelled.toLowerCase();
    if (!NAME.test(spelled))
      throw fault(`has an invalid name in place ${at + 1}. It must be an HTTP field name of at most 64 characters`);
    if (RESERVED.test(name)) throw fault(`must not contain ${name}, which notebridge or HTTP sets`);
    if (read.has(name)) throw fault(`contains ${name} twice. Upper and lower case are the same`);
    if (typeof value !== 'string' || !VALUE.test(value) || value.trim() !== value)
      throw fault(
        `has an invalid value of ${name}. It must have 1 to 4,000 visible ASCII characters; spaces only inside`,
      );
    read.set(name, value);
  }
  return Object.fromEntries(read);
}
