import { Injectable } from '@nestjs/common';
import { Metrics } from '../../monitoring/metrics.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { FetchesRepository } from './fetches.repository.js';

/** Fetches sessions: one call, whose outcome is stored. */
@Injectable()
export class SessionFetcher {
  private readonly fetches;

  constructor(
    private readonly rows: FetchesRepository,
    private readonly platform: PlatformClient,
    metrics: Metrics,
  ) {
    this.fetches = metrics.counter('session_fetches_total', 'Fetches of sessions by outcome', ['outcome']);
  }

  /** Does what is due about a session of the platform, if anything is. @returns false if it is none */
  async work(id: string, signal: AbortSignal): Promise<boolean> {
    const begun = await this.rows.begin(id);
    if (begun === undefined) return false;
    if (begun === 'nothing') return true;
    let answer: SessionAnswer;
    try {
      answer = await this.platform.getSession(begun.sessionId, { signal });
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      if (!signal.aborted) this.fetches.inc({ outcome: await this.rows.storeFault(begun, error) });
      return true;
    }
    this.fetches.inc({ outcome: 'answer' });
    await this.rows.storeAnswer(begun, answer);
    return true;
  }
}
