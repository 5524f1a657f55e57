import { Body, Controller, Get, Put } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Caller, type Principal, Scopes } from '../access/identity/scopes.js';
import { Unaudited } from '../audit/audit.interceptor.js';
import { SendingRequest, SendingResponse } from './sending.dto.js';
import { Sending } from './sending.js';

@ApiTags('operations')
@Controller('v1/sending')
export class SendingController {
  constructor(private readonly sending: Sending) {}

  /** Get whether calls to the platform are held, and the holder */
  @Get()
  @Scopes()
  @Unaudited()
  read(): Promise<SendingResponse> {
    return this.sending.read();
  }

  /**
   * Hold or release all calls that change the platform
   *
   * @remarks While held, everything is received and read, and only reading calls leave. People and requests wait with the
   * code `held`. Pushes to subscriptions wait, too; calls that cannot wait are 503 `sending-held`. A release after a restore raises the epoch of the feed, so
   * that earlier cursors are 410 `cursor-gone`.
   */
  @Put()
  @Scopes('admin')
  set(@Body() body: SendingRequest, @Caller() caller: Principal): Promise<SendingResponse> {
    return this.sending.set(body, caller);
  }
}
