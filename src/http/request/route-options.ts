import { FASTIFY_ROUTE_CONFIG_METADATA } from '@nestjs/platform-fastify/constants.js';
import type { Env } from '../../config/env.js';

/** Bytes, or how to read them from the environment. */
export type ByteLimit = number | ((env: Env) => number);

/** What a route says about itself to the HTTP edge. */
export interface EdgeOptions {
  /** The body reaches the handler as it came, whatever its Content-Type. */
  rawBody?: 'buffer' | 'stream';
  /** Bytes that a body read into memory may have. */
  bodyLimit?: ByteLimit;
  /** multipart/form-data is taken beside JSON; the handler reads `request.parts()`. */
  multipart?: boolean;
  /** Called so often that a successful call is not worth a log line. */
  hot?: boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    edge?: EdgeOptions;
  }
}

/** Adds options to a route; several decorators add up. */
function addOptions(options: EdgeOptions): MethodDecorator {
  return (_target, _key, descriptor) => {
    const handler = descriptor.value as object;
    const before = Reflect.getMetadata(FASTIFY_ROUTE_CONFIG_METADATA, handler) ?? {};
    const after = { ...before, edge: { ...before.edge, ...options } };
    Reflect.defineMetadata(FASTIFY_ROUTE_CONFIG_METADATA, after, handler);
  };
}

/**
 * The handler gets the body's bytes as they came (a `Buffer`, also for JSON and for no Content-Type at all): inject
 * them with `@RawContent()`. Content encodings are not undone.
 *
 * @param limit bytes; more is answered 413 `body-too-large`
 */
export function TakesBytes(limit: ByteLimit): MethodDecorator {
  return addOptions({ rawBody: 'buffer', bodyLimit: limit });
}

/**
 * The handler gets the unread body: `@RawContent()` injects the stream. multipart/form-data is left to
 * `request.parts()`. No limit applies: the handler counts.
 */
export function TakesStream(): MethodDecorator {
  return addOptions({ rawBody: 'stream' });
}

/** The route takes multipart/form-data, which the handler streams from `request.parts()`, beside JSON. */
export function TakesMultipart(): MethodDecorator {
  return addOptions({ multipart: true });
}

/** The route takes JSON bodies up to another size than the usual one. */
export function BodyLimit(limit: ByteLimit): MethodDecorator {
  return addOptions({ bodyLimit: limit });
}

/** Successful calls of this route are not logged, and get no headers meant for browsers. */
export function HotRoute(): MethodDecorator {
  return addOptions({ hot: true });
}
