/**
 * The Content-Security-Policy of a page of ours (W3C CSP 3): scripts, styles and requests from here alone, nothing inline.
 *
 * @param more further directives
 */
export const pagePolicy = (...more: string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    ...more,
  ].join('; ');
