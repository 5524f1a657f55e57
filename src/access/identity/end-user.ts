import type { IncomingHttpHeaders } from 'node:http';
import { Problem } from '../../http/problem/problem.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** The EHR's id of the user on whose behalf it calls. */
    onBehalfOf?: string;
    /** The EHR's code for the reason of the call. */
    purpose?: string;
  }
}

/** Characters of ids and codes; neither a blank nor an @, so that no name and no email is kept by mistake. */
export const END_USER_VALUE = /^[A-Za-z0-9._:/|-]{1,128}$/;

/** The headers with which the EHR names its user and the reason, and the members of a request that hold them. */
export const END_USER_HEADERS = [
  { name: 'Notebridge-On-Behalf-Of', member: 'onBehalfOf', problem: 'bad-on-behalf-of' },
  { name: 'Notebridge-Purpose', member: 'purpose', problem: 'bad-purpose' },
] as const;

/** The schema of these headers in OpenAPI. */
export const END_USER_SCHEMA = { type: 'string', pattern: END_USER_VALUE.source } as const;

/** The user and the reason that the EHR names. @throws {Problem} 400 `bad-on-behalf-of`, `bad-purpose` */
export function endUserOf(headers: IncomingHttpHeaders): { onBehalfOf?: string; purpose?: string } {
  const said: { onBehalfOf?: string; purpose?: string } = {};
  for (const { name, member, problem } of END_USER_HEADERS) {
    const value = headers[name.toLowerCase()];
    if (value === undefined) continue;
    if (typeof value !== 'string' || !END_USER_VALUE.test(value)) {
      const detail = `The header ${name} must be an id or a code, no name: 1 to 128 letters, digits and . _ : / | -`;
      throw new Problem(problem, detail);
    }
    said[member] = value;
  }
  return said;
}
