import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Unaudited } from '../access/audit/audit.interceptor.js';
import { Scopes } from '../access/identity/scopes.js';
import { Problem } from '../http/problem/problem.js';
import { RouteOptions } from '../http/request/route-options.js';
import { pagePolicy } from './page-policy.js';
import { QueueBoard } from './queue-board.js';

/** bull-board needs a base address, and makes markup of strings. */
const POLICY = pagePolicy("base-uri 'self'");

/**
 * The queues, for who has the scope `admin`, by the console's session or a key. Whoever opens the page leaves an entry in
 * the audit trail; what the page then reads every few seconds are numbers and names of queues, and leaves none.
 */
@ApiExcludeController()
@Scopes('admin')
@Controller('queues')
export class QueuesController {
  constructor(private readonly board: QueueBoard) {}

  @Get('api/*')
  @Unaudited()
  @RouteOptions({ hot: true })
  async answer(
    @Param('*') asked: string,
    @Query() query: Record<string, unknown>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<unknown> {
    const { status = 200, body } = await this.board.answer(asked, query);
    reply.status(status);
    return body;
  }

  @Get('static/*')
  @Unaudited()
  @RouteOptions({ hot: true })
  file(@Param('*') name: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    const file = this.board.file(name);
    if (!file) throw new Problem(404, 'not-found', 'The board of the queues has no such file; reload the page.');
    file.send(request, reply);
  }

  @Get(['', '*'])
  @RouteOptions({ signInAt: '/console/queues' })
  page(@Res({ passthrough: true }) reply: FastifyReply): string {
    reply.header('content-security-policy', POLICY).header('content-type', 'text/html; charset=utf-8');
    return this.board.page();
  }
}
