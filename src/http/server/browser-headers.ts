import type { FastifyInstance } from 'fastify';
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
 * Gives answers the headers that browsers heed, but for those of hot routes, which no browser calls. Most answers hold
 * personal data: no cache may keep one.
 */
export function installBrowserHeaders(fastify: FastifyInstance): void {
  const addHeaders = helmet({ contentSecurityPolicy: CONTENT_SECURITY_POLICY });
  fastify.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config?.edge?.hot) return done();
    reply.header('cache-control', 'no-store');
    addHeaders(request.raw, reply.raw, (error) => done(error as Error | undefined));
  });
}
