import { Controller, Get, Query } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { PageQuery } from '../../http/request/page.js';
import { Rejections } from '../receive/rejections.js';
import { RejectionAnswer, RejectionPage } from './deliveries.dto.js';

@ApiTags('webhooks')
@Scopes('webhooks')
@Controller('v1/webhook-rejections')
export class RejectionsController {
  constructor(private readonly rejections: Rejections) {}

  @Get()
  @ApiOperation({ summary: 'How many requests the receiver refused, by minute and cause' })
  @ApiOkResponse({ type: RejectionPage })
  async list(@Query() query: PageQuery): Promise<RejectionPage> {
    const { items, nextCursor } = await this.rejections.list(query.limit, query.cursor);
    return { items: items.map((row) => new RejectionAnswer(row)), nextCursor };
  }
}
