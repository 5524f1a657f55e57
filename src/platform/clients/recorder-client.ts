import { Injectable } from '@nestjs/common';
import type { InitiateAuthRequest } from '../contract/wire-types.js';
import { type CallOptions, PlatformHttp } from '../http/platform-http.js';
import { RecorderToken } from './recorder-token.js';

/** Access to the browser recorder. All methods throw {@link PlatformError}. */
@Injectable()
export class RecorderClient {
  constructor(private readonly http: PlatformHttp) {}

  /**
   * Fetches a single-use token for a provider.
   *
   * @param userId the provider's id on the platform
   */
  async initiateAuth(userId: string, options: CallOptions = {}): Promise<RecorderToken> {
    const body: InitiateAuthRequest = { userId };
    const answer = await this.http.call({ operation: 'initiateAuth', body, ...options });
    return new RecorderToken(answer.requiredText('otpToken'));
  }
}
