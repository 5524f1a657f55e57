import type { FastifyRequest } from 'fastify';
import { unsupportedMediaType } from '../../http/problem/fault.js';
import { Problem } from '../../http/problem/problem.js';
import { charsetOf, decodeText, mediaTypeOf } from '../../text/json-text.js';
import type { Parameter } from './note-search.js';

const FORM = 'application/x-www-form-urlencoded';

/** Maximum bytes of a form: more than the longest URL. */
export const MAX_FORM_BYTES = 16 * 1024;

/** The parameters of a URL; a repeated one is there several times. */
export function parametersOfQuery({ query }: FastifyRequest): Parameter[] {
  const given = Object.entries(query as Record<string, string | string[]>);
  return given.flatMap(([name, values]) => [values].flat().map((value) => [name, value] as const));
}

/**
 * The parameters of a body, which is a form or empty.
 *
 * @throws {Problem} 400 `bad-search`; 415 `unsupported-media-type`
 */
export function parametersOfForm({ body, headers }: FastifyRequest): Parameter[] {
  if (!Buffer.isBuffer(body) || body.length === 0) return [];
  const type = headers['content-type'];
  if (mediaTypeOf(type) !== FORM || !/^utf-?8$/.test(charsetOf(type))) throw unsupportedMediaType(FORM);
  const text = decodeText(body);
  if (text === undefined) throw new Problem('bad-search', 'The form is not valid UTF-8. Encode it as UTF-8.');
  return [...new URLSearchParams(text)];
}
