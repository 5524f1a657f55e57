import type { FastifyInstance } from 'fastify';
import { Problem } from './problem.js';

interface Route {
  path: RegExp;
  methods: string[];
}

/** Answers a wrong method on a path that there is with 405 and Allow (RFC 9110 §15.5.6). Call it before routes exist. */
export function installWrongMethod(fastify: FastifyInstance): void {
  const routes: Route[] = [];

  fastify.addHook('onRoute', ({ url, method }) => {
    routes.push({ path: pathOf(url), methods: [method].flat() });
  });

  fastify.addHook('onRequest', (request, _reply, done) => {
    if (!request.is404) return done();
    const [path = ''] = request.url.split('?', 1);
    const allowed = routes.filter((route) => route.path.test(path)).flatMap(({ methods }) => methods);
    done(allowed.length > 0 ? methodNotAllowed(new Set(allowed)) : undefined);
  });
}

/** What a route's pattern matches: `:name` is one segment, `*` is whatever is left. */
function pathOf(pattern: string): RegExp {
  const source = pattern
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:[^/]+/g, '[^/]+')
    .replace('*', '.*');
  return new RegExp(`^${source}$`);
}

function methodNotAllowed(allowed: Set<string>): Problem {
  const allow = [...allowed].sort().join(', ');
  return new Problem(405, 'method-not-allowed', `This path takes ${allow}; /openapi.json says what each does.`, {
    headers: { allow },
  });
}
