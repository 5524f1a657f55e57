import { Injectable } from '@nestjs/common';
import { Metrics } from '../../monitoring/metrics.js';
import { PlatformClient, type ProcessingSessionAnswer } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import { ProcessingsRepository } from './processings.repository.js';

/** Looks up the sessions of the platform's processing ids. */
@Injectable()
export class ProcessingLookups {
  private readonly lookups;

  constructor(
    private readonly rows: ProcessingsRepository,
    private readonly platform: PlatformClient,
    private readonly contract: Contract,
    metrics: Metrics,
  ) {
    const help = 'Lookups of processing ids by outcome';
    this.lookups = metrics.counter('processing_session_fetches_total', help, ['outcome']);
  }

  /** Looks up a processing id, if it is due. */
  async work(processingId: string, signal: AbortSignal): Promise<void> {
    const lookup = this.contract.canCall('getProcessingSession') ? await this.rows.begin(processingId) : undefined;
    if (!lookup) return;
    let answer: ProcessingSessionAnswer;
    try {
      const options = { signal, expectedSessionId: lookup.sessionId };
      answer = await this.platform.getProcessingSession(processingId, options);
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      if (!signal.aborted) this.lookups.inc({ outcome: await this.rows.storeFault(lookup, error) });
      return;
    }
    this.lookups.inc({ outcome: 'answer' });
    await this.rows.storeAnswer(lookup, answer);
  }
}
