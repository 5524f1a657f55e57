import { createServer, type IncomingMessage, type ServerOptions, type ServerResponse } from 'node:http';
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify';

type Route = (request: IncomingMessage, response: ServerResponse) => void;

declare module 'fastify' {
  interface FastifyInstance {
    /** Takes the routes that go without the hooks of the edge. */
    unhooked: FastifyInstance;
  }
}

/**
 * A second instance of Fastify behind the same server, for routes that go without the hooks of the edge: within one
 * instance, a hook applies to every scope.
 */
export class UnhookedRoutes {
  readonly instance: FastifyInstance;
  private readonly routes = new Set<string>();

  constructor(options: FastifyServerOptions) {
    this.instance = fastify(options);
    this.instance.addHook('onRoute', ({ method, url }) => {
      this.routes.add(`${method} ${url}`);
    });
  }

  /** Makes the server of the first instance. @param route answers all other requests */
  readonly serverFactory = (route: Route, options: { http?: ServerOptions; keepAliveTimeout?: number }) =>
    createServer({ ...options.http, keepAliveTimeout: options.keepAliveTimeout }, (request, response) => {
      if (this.has(request)) this.instance.routing(request, response);
      else route(request, response);
    });

  private has({ method, url = '' }: IncomingMessage): boolean {
    const query = url.indexOf('?');
    return this.routes.has(`${method} ${query < 0 ? url : url.slice(0, query)}`);
  }
}
