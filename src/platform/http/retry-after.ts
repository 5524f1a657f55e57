/** The three forms of RFC 9110, section 5.6.7; asctime carries no zone and means GMT. */
const HTTP_DATES = [
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
];
/** A longer wait is cut: a mistaken header must not stop anything for days. Milliseconds. */
const LONGEST_MS = 60 * 60_000;

const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;

/**
 * Reads a Retry-After header (RFC 9110, section 10.2.3): seconds, or an HTTP date.
 *
 * @param now the moment from which a date counts
 * @returns milliseconds to wait, above 0 and an hour at most; undefined when the header is absent, unreadable or says a moment that is past
 */
export function retryAfterMs(header: string | undefined, now: Date): number | undefined {
  const text = header?.trim() ?? '';
  const wait = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : parseHttpDate(text) - now.getTime();
  return wait > 0 ? Math.min(LONGEST_MS, wait) : undefined;
}

function parseHttpDate(text: string): number {
  if (HTTP_DATES.some((form) => form.test(text))) return Date.parse(text);
  return ASCTIME.test(text) ? Date.parse(`${text} GMT`) : Number.NaN;
}
