import type { Readable } from 'node:stream';
import { applyDecorators, createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';
import { Problems } from '../problem/described-problems.js';

/** What a route says about itself to the HTTP edge. */
interface EdgeOptions {
  /**
   * Beside JSON: `stream`: the handler reads the body itself and counts its bytes (`@RawContent()`, or
   * `request.parts()` of multipart/form-data), whatever its type; `multipart`: multipart/form-data is taken too, and
   * left to `request.parts()`; `raw`: the route's Fastify scope has content-type parsers of its own.
   */
  body?: 'stream' | 'multipart' | 'raw';
  /** Bytes that a body read into memory may have. */
  bodyLimit?: number;
  /** Called so often that a successful call is not worth a log line, and by no browser. */
  hot?: boolean;
  /** What it answers never changes under its address and holds nothing personal: a browser may keep it. */
  immutable?: boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    edge?: EdgeOptions;
  }
}

/** Declares what a route takes beside JSON bodies of the usual size. */
export const RouteOptions = (edge: EdgeOptions): MethodDecorator =>
  edge.body === 'multipart' || edge.body === 'stream'
    ? applyDecorators(RouteConfig({ edge }), Problems({ 400: ['bad-multipart'] }))
    : RouteConfig({ edge });

/** Injects the unread body of a route for streams. */
export const RawContent = createParamDecorator((_: unknown, context: ExecutionContext): Readable => {
  const request = context.switchToHttp().getRequest<FastifyRequest>();
  return (request.body as Readable | undefined) ?? request.raw;
});
