import type { FastifyRequest } from 'fastify';

/** Characters of an id that the trail keeps. */
const LONGEST_ID = 200;

/** Subjects of one entry at most. */
const MOST_SUBJECTS = 10;

/** A request as the trail names it: its method and its route pattern. */
export function routeOf(request: Pick<FastifyRequest, 'method' | 'routeOptions'>): string {
  return `${request.method} ${request.routeOptions.url ?? 'unmatched'}`;
}

/**
 * The ids that a request was about: its path parameters, and the id of what it made.
 *
 * @param params of the route
 * @param result that the handler answered with
 */
export function subjectsOf(params: unknown, result: unknown): Record<string, string> {
  const named = Object.entries({
    ...(result instanceof Object && 'id' in result && { id: result.id }),
    ...asObject(params),
  });
  const ids = named.filter((pair): pair is [string, string] => typeof pair[1] === 'string' && pair[1] !== '');
  return Object.fromEntries(ids.slice(0, MOST_SUBJECTS).map(([name, id]) => [name, keepable(id)]));
}

/** An id without what the database can't keep: NULs, and the half of a character at a cut. */
function keepable(id: string): string {
  return id.slice(0, LONGEST_ID).replace(/[\0\p{Cs}]/gu, '');
}

function asObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}
