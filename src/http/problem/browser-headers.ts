import type { IncomingMessage, ServerResponse } from 'node:http';
import helmet from 'helmet';

/** The documentation and the console load nothing from elsewhere. */
const CONTENT_SECURITY_POLICY = {
  useDefaults: false,
  directives: {
    defaultSrc: ["'self'"],
    styleSrc: ["'self'", "'unsafe-inline'"],
    imgSrc: ["'self'", 'data:'],
    objectSrc: ["'none'"],
    baseUri: ["'none'"],
    frameAncestors: ["'none'"],
    formAction: ["'self'"],
  },
};

/**
 * The headers of every answer: those that browsers heed, and that no cache may keep it, since most hold personal data.
 * They are the same each time, so helmet is asked once.
 */
export const BROWSER_HEADERS: ReadonlyMap<string, string> = (() => {
  const headers = new Map([['cache-control', 'no-store']]);
  const answer = {
    setHeader: (name: string, value: string) => headers.set(name.toLowerCase(), value),
    removeHeader: () => undefined,
  };
  helmet({ contentSecurityPolicy: CONTENT_SECURITY_POLICY })(
    {} as IncomingMessage,
    answer as unknown as ServerResponse,
    () => undefined,
  );
  return headers;
})();
