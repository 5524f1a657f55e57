import { Problem } from '../../http/problem/problem.js';

/**
 * The refusal of a request for one of its fields, in the form in which validation refuses.
 *
 * @param pointer JSON Pointer (RFC 6901)
 * @param detail what is expected there; never the value
 */
export function requestFault(pointer: string, detail: string): Problem {
  const where = pointer === '' ? 'The body' : `The field ${pointer}`;
  return new Problem(400, 'validation', `${where} is not acceptable: ${detail}.`, {
    pointer,
    extensions: { errors: [{ pointer, detail }] },
  });
}
