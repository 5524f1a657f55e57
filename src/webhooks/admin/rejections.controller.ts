import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { PageQuery } from '../../http/request/page.js';
import { Rejections } from '../receive/rejections.js';
import { RejectionPageResponse, RejectionResponse } from './deliveries.dto.js';

@ApiTags('webhooks')
@Scopes('webhooks')
@Controller('v1/webhook-rejections')
export class RejectionsController {
  constructor(private readonly rejections: Rejections) {}

  /** How many requests the receiver refused, by minute and cause */
  @Get()
  async list(@Query() query: PageQuery): Promise<RejectionPageResponse> {
    const { items, nextCursor } = await this.rejections.list(query.limit, query.cursor);
    return { items: items.map((row) => new RejectionResponse(row)), nextCursor };
  }
}
