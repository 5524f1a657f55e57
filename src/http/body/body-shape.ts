import { Problem } from '../problem/problem.js';

/** Levels of a JSON body; validation recurses over them. No request of this API has more than five. */
export const DEEPEST = 50;

/** Members of one object, and items of one list: validation compares them with each other. */
export const MOST_MEMBERS = 100;
export const MOST_ITEMS = 1_000;

/** A part of a request that is too large to be validated. */
export interface ShapeFault {
  what: 'levels' | 'members' | 'items';
  /** JSON Pointer (RFC 6901) to the object or the list. */
  pointer: string;
}

/** Characters of a name that a pointer repeats. */
const LONGEST_NAME = 64;

/**
 * Looks for what would make validation costly, in time linear in the value's size: too many levels, members of an
 * object, or items of a list.
 *
 * @param value as JSON gives it
 */
export function shapeFault(value: unknown, pointer = '', levels = DEEPEST): ShapeFault | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (levels === 0) return { what: 'levels', pointer };
  const names = Object.keys(value);
  if (Array.isArray(value) && names.length > MOST_ITEMS) return { what: 'items', pointer };
  if (!Array.isArray(value) && names.length > MOST_MEMBERS) return { what: 'members', pointer };
  for (const name of names) {
    const member = (value as Record<string, unknown>)[name];
    if (typeof member !== 'object') continue;
    const fault = shapeFault(member, pointer + pointerStep(name), levels - 1);
    if (fault) return fault;
  }
  return undefined;
}

/** One step of a JSON Pointer, escaped as RFC 6901 §3 says. */
export function pointerStep(name: string): string {
  return `/${name.slice(0, LONGEST_NAME).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** What a request is refused with before it is validated, or undefined. */
export function shapeProblem(value: unknown): Problem | undefined {
  const fault = shapeFault(value);
  if (fault === undefined) return undefined;
  const { what, pointer } = fault;
  if (what === 'levels') {
    return new Problem(400, 'too-deep', `The body nests more than ${DEEPEST} levels; flatten it.`);
  }
  const detail = `must hold no more than ${what === 'items' ? MOST_ITEMS : MOST_MEMBERS} ${what}`;
  const where = pointer === '' ? 'The request' : `The field ${pointer}`;
  return new Problem(400, 'validation', `${where} is not acceptable: ${detail}.`, {
    pointer,
    extensions: { errors: [{ pointer, detail }] },
  });
}
