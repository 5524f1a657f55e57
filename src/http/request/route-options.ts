import type { Readable } from 'node:stream';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';

/** The options of a route at the HTTP edge. */
interface EdgeOptions {
  /**
   * Bodies that the route accepts in addition to JSON. `stream`: any type; the handler reads the body and counts its
   * bytes (`@RawContent()`, or `request.parts()` of multipart/form-data). `multipart`: multipart/form-data, read with
   * `request.parts()`. `bytes`: any type; the body is a Buffer.
   */
  body?: 'stream' | 'multipart' | 'bytes';
  /** Bytes that a body read into memory may have, or the setting that holds their number. */
  bodyLimit?: number | 'WEBHOOK_BODY_LIMIT';
  /** Called so often that a successful call is not worth a log line. */
  hot?: boolean;
  /** True if requests are not limited per second, because a monitor or the platform sends them. */
  unlimited?: boolean;
  /** True if the answer of a URL never changes and contains nothing personal, so that browsers may cache it. */
  immutable?: boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    edge?: EdgeOptions;
  }
}

/** Declares what a route accepts in addition to JSON bodies of the usual size. */
export const RouteOptions = (edge: EdgeOptions): MethodDecorator => RouteConfig({ edge });

/** Injects the unread body of a route for streams. */
export const RawContent = createParamDecorator((_: unknown, context: ExecutionContext): Readable => {
  const request = context.switchToHttp().getRequest<FastifyRequest>();
  return (request.body as Readable | undefined) ?? request.raw;
});
