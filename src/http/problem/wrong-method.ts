import type { FastifyInstance } from 'fastify';
import { Problem } from './problem.js';

interface Route {
  /** Segments of its pattern. */
  path: string[];
  methods: string[];
}

/** Answers a wrong method on a path that there is with 405 and Allow (RFC 9110 §15.5.6). Call it before routes exist. */
export function installWrongMethod(fastify: FastifyInstance): void {
  const routes: Route[] = [];

  fastify.addHook('onRoute', ({ url, method }) => {
    routes.push({ path: url.split('/'), methods: [method].flat() });
  });

  fastify.addHook('onRequest', (request, _reply, done) => {
    if (!request.is404) return done();
    const [path = ''] = request.url.split('?', 1);
    const segments = path.split('/');
    const allowed = routes.filter((route) => fits(route.path, segments)).flatMap(({ methods }) => methods);
    done(allowed.length > 0 ? methodNotAllowed(new Set(allowed)) : undefined);
  });
}

/** Whether a path fits a route's pattern: `:name` is one segment, `*` is whatever is left. */
function fits(pattern: readonly string[], path: readonly string[]): boolean {
  const star = pattern.indexOf('*');
  if (star < 0 ? path.length !== pattern.length : path.length <= star) return false;
  return pattern
    .slice(0, star < 0 ? undefined : star)
    .every((segment, at) => (segment.startsWith(':') ? path[at] !== '' : segment === path[at]));
}

function methodNotAllowed(allowed: Set<string>): Problem {
  const allow = [...allowed].sort().join(', ');
  return new Problem(405, 'method-not-allowed', `This path takes ${allow}; /openapi.json says what each does.`, {
    headers: { allow },
  });
}
