import type { IncomingMessage } from 'node:http';

/** The scheme and authority of a target in absolute form, as proxies send it (RFC 9112 §3.2.2). */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** The target of a request in origin form, so that both forms reach the same route. */
export const requestTarget = ({ url = '/' }: Pick<IncomingMessage, 'url'>): string => {
  const target = url.replace(ORIGIN, '');
  return target.startsWith('/') ? target : `/${target}`;
};
