import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiCreatedResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Caller, type Principal } from '../access/identity/caller.js';
import { Scopes } from '../access/identity/scopes.js';
import { ClientDisconnect } from '../http/request/client-disconnect.js';
import { LaunchDto, RecorderAnswer, RecoveryDto } from './recorder.dto.js';
import { RecorderService } from './recorder.service.js';

/** The white-labeled browser recorder. No Idempotency-Key here: its record would keep the token. */
@ApiTags('recorder')
@Controller('v1/recorder')
@Scopes('recorder')
export class RecorderController {
  constructor(private readonly recorder: RecorderService) {}

  @Post('launches')
  @ApiOperation({ summary: "Opens the recorder for a provider's session with a client it treats" })
  @HttpCode(201)
  @ApiCreatedResponse({ type: RecorderAnswer })
  async launch(
    @Body() { provider, client, variant, redirectUrl }: LaunchDto,
    @Caller() caller: Principal,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<RecorderAnswer> {
    return {
      url: await this.recorder.launch(
        { provider, client, variant, redirectUrl: redirectUrl ?? undefined },
        caller,
        signal,
      ),
    };
  }

  @Post('recoveries')
  @ApiOperation({
    summary: 'Opens the page where a provider finishes interrupted uploads',
    description: 'It lists only what was recorded on the same device and in the same browser.',
  })
  @HttpCode(201)
  @ApiCreatedResponse({ type: RecorderAnswer })
  async recover(
    @Body() { provider }: RecoveryDto,
    @Caller() caller: Principal,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<RecorderAnswer> {
    return { url: await this.recorder.recover(provider, caller, signal) };
  }
}
