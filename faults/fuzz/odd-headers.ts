/** Methods that an operation does not have. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

/** Headers with values that no caller would send on purpose. */
export const HEADERS: readonly (readonly [name: string, values: readonly (string | string[])[]])[] = [
  [
    'prefer',
    [
      'wait=0',
      'wait=-1',
      'wait=',
      'wait=1e3',
      'wait=0; wait=0',
      'respond-async',
      'return=minimal, wait=0',
      '"',
      'wait="0',
    ],
  ],
  ['idempotency-key', ['', 'k', 'k'.repeat(255), 'k'.repeat(256), '\u00ff\u00fe', '__proto__', 'a,b', ' ', ['a', 'b']]],
  [
    'accept',
    [
      '*/*',
      'text/markdown',
      'application/fhir+json',
      'text/html',
      'image/png',
      '',
      ';q=',
      'a'.repeat(5_000),
      '*/*;q=0',
    ],
  ],
  ['accept-encoding', ['gzip', 'br;q=2', 'identity;q=0', '*']],
  ['content-encoding', ['gzip', 'br', 'deflate', 'identity', 'x']],
  [
    'notebridge-on-behalf-of',
    ['user-7', '', 'u'.repeat(5_000), '\u00e9\u00e8', 'a\tb', '__proto__', "'; --", ['a', 'b']],
  ],
  ['notebridge-purpose', ['treatment', '', 'p'.repeat(5_000), '\u00ff', '{}', '=1+1']],
  ['x-forwarded-for', ['127.0.0.1', '::1', 'unknown', '1.2.3.4, 5.6.7.8', 'x'.repeat(3_000), '999.999.999.999', "'"]],
  ['x-forwarded-host', ['evil.example', '', '\u00e9']],
  ['x-forwarded-proto', ['https', 'gopher']],
  ['host', ['evil.example', 'a'.repeat(300), '127.0.0.1:99999']],
  ['x-request-id', ['r', 'r'.repeat(5_000), '{"a":1}']],
  ['x-http-method-override', ['DELETE']],
  ['range', ['bytes=0-1', 'bytes=9-1', 'lines=1']],
  ['if-none-match', ['*', '"x"']],
  ['cookie', ['a=b', '__proto__=1']],
  ['traceparent', ['00-0', '00-00000000000000000000000000000000-0000000000000000-01']],
  ['te', ['trailers']],
  ['x-long', ['x'.repeat(10_000)]],
];

/** Content-Types that a route may not accept. */
export const MEDIA = [
  'application/json',
  'application/json; charset=utf-16',
  'application/JSON;charset="x',
  'text/plain',
  'text/csv',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'multipart/form-data; boundary=',
  'application/octet-stream',
  'application/problem+json',
  'application/vnd.api+json',
  '',
  '/',
  'a/b;'.repeat(200),
];
