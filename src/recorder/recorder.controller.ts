import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiCreatedResponse, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../access/identity/scopes.js';
import { ClientDisconnect } from '../http/request/waiting.js';
import { LaunchRequest, RecorderResponse, RecoveryRequest } from './recorder.dto.js';
import { RecorderService } from './recorder.service.js';

/** The white-labeled browser recorder. No Idempotency-Key here: its record would keep the token. */
@ApiTags('recorder')
@Controller('v1/recorder')
@Scopes('recorder')
export class RecorderController {
  constructor(private readonly recorder: RecorderService) {}

  /** Get a recorder URL for a provider's session with its client */
  @Post('launches')
  @HttpCode(201)
  async launch(@Body() request: LaunchRequest, @ClientDisconnect() signal: AbortSignal): Promise<RecorderResponse> {
    return { url: await this.recorder.launch(request, signal) };
  }

  /**
   * Get the URL where a provider finishes interrupted uploads
   *
   * @remarks It lists only what was recorded on the same device and in the same browser.
   */
  @Post('recoveries')
  @HttpCode(201)
  @ApiCreatedResponse({ type: RecorderResponse })
  async recover(
    @Body() { provider }: RecoveryRequest,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<RecorderResponse> {
    return { url: await this.recorder.recover(provider, signal) };
  }
}
