import { inspect } from 'node:util';
import { Injectable } from '@nestjs/common';
import { type CallOptions, PlatformHttp } from '../http/platform-http.js';

const PLACEHOLDER = '[recorder token]';

/** The single-use token that opens the recorder. It prints as a placeholder wherever it is logged or serialised. */
export class RecorderToken {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The token itself: for the recorder's address and nothing else. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return PLACEHOLDER;
  }

  toJSON(): string {
    return PLACEHOLDER;
  }

  [inspect.custom](): string {
    return PLACEHOLDER;
  }
}

/** Access to the browser recorder. All methods throw {@link PlatformError}. */
@Injectable()
export class RecorderClient {
  constructor(private readonly http: PlatformHttp) {}

  /** Fetches a single-use token for a provider. @param userId the provider's id on the platform */
  async initiateAuth(userId: string, options: CallOptions = {}): Promise<RecorderToken> {
    const answer = await this.http.call({ operation: 'initiateAuth', body: { userId }, ...options });
    return new RecorderToken(answer.requiredText('otpToken'));
  }
}
