/** @throws {TypeError} that names the option, never its value: it may be a secret */
export function checkAddress(url: unknown): void {
  const wanted = 'createClient needs the address of notebridge as url, such as https://notebridge.example';
  // False for `localhost:3000`, which is an address with the scheme `localhost:`.
  if (!URL.canParse(String(url)) || !/^https?:$/.test(new URL(String(url)).protocol)) throw new TypeError(`${wanted}.`);
  const { username, password } = new URL(String(url));
  if (username || password || /[?#]/.test(String(url)))
    throw new TypeError(`${wanted}, without a user, a password, a query and a fragment.`);
}

/** @throws {TypeError} that names the option, never its value: it may be a secret */
export function checkHeaderValue(option: string, value: unknown): void {
  if (value === undefined || (typeof value === 'string' && isSendable(value))) return;
  throw new TypeError(
    `The option ${option} of createClient must be text that an HTTP header can contain, in one line.`,
  );
}

function isSendable(value: string): boolean {
  try {
    new Headers([['name', value]]);
    return true;
  } catch {
    return false;
  }
}

/**
 * Checks the parameters of a path. Without a value openapi-fetch would send the braces, and `.` and `..` change the path.
 *
 * @throws {TypeError} that names the parameter
 */
export function checkPath(path: string, params: unknown): void {
  const values = (params as { path?: Record<string, unknown> } | undefined)?.path;
  for (const [, name = ''] of path.matchAll(/\{([^{}]+)\}/g)) {
    const value = values?.[name];
    const isText = typeof value === 'string' && !['', '.', '..'].includes(value);
    if (!isText && !Number.isFinite(value))
      throw new TypeError(`${path} needs params.path.${name}: text, but not "." or "..", or a number.`);
  }
}

/** @throws {TypeError} for a path, for bytes, and for an open stream, which no second attempt could read */
export function checkUpload(body: unknown): void {
  if (body instanceof Blob || body instanceof FormData || typeof body === 'function') return;
  throw new TypeError(
    'upload needs a Blob, a form or a function: pass openAsBlob(path) or () => createReadStream(path).',
  );
}
