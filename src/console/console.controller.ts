import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public } from '../access/identity/scopes.js';
import { version } from '../config/version.js';
import { Problem } from '../http/problem/problem.js';
import { RouteOptions } from '../http/request/route-options.js';
import { ConsoleFiles } from './console-files.js';

/**
 * The Content-Security-Policy of the console (W3C CSP 3): scripts, styles and requests only from this host, nothing inline,
 * and no string becomes markup (Trusted Types). All other answers have the policy of the documentation, which allows
 * inline styles.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

/** A year, because the name of an asset changes with its content. */
const KEEP = 'public, max-age=31536000, immutable';

@ApiExcludeController()
@Public()
@Controller()
export class ConsoleController {
  constructor(private readonly files: ConsoleFiles) {}

  /** Redirects browsers to the console, and lists the addresses for programs. */
  @Get()
  root(@Req() { headers }: FastifyRequest, @Res() reply: FastifyReply): void {
    if (headers.accept?.includes('text/html')) reply.redirect('/console', 302);
    else
      reply.send({
        name: 'notebridge',
        version: version(),
        console: '/console',
        docs: '/docs',
        openapi: '/openapi.json',
        health: { live: '/health/live', ready: '/health/ready' },
      });
  }

  @Get('console/assets/:name')
  @RouteOptions({ hot: true, immutable: true })
  asset(@Param('name') name: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    const file = this.files.get(`assets/${name}`);
    if (!file) throw new Problem('not-found', 'The console has no such file. Reload the page.');
    file.send(request, reply.header('cache-control', KEEP));
  }

  @Get(['console', 'console/*'])
  @RouteOptions({ hot: true })
  page(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    const page = this.files.get('index.html');
    if (!page) throw new Problem('not-built', 'The console was not built. Run npm run build.');
    page.send(request, reply.header('content-security-policy', POLICY));
  }
}
