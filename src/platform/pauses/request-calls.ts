import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { OperationName } from '../contract/operations.js';
import { PlatformError } from '../contract/platform-errors.js';
import { apiOf } from './apis.js';
import { CallJudge } from './call-judge.js';
import type { Ending } from './pause-rule.js';
import { PausesRepository } from './pauses.repository.js';

/** An answer. */
export const OK: Ending = { kind: 'ok', status: 200 };

/** The end of a failed call. */
export const endingOf = ({ kind, status, isWrongAddress, retryAfterMs }: PlatformError): Ending => ({
  ...{ kind, status: status ?? null, isWrongAddress, retryAfterMs },
});

/** Calls that a caller waits for. Only the pause of a 429 stops them, because any other may be over; their ends count as any. */
@Injectable()
export class RequestCalls {
  constructor(
    private readonly prisma: PrismaService,
    private readonly pauses: PausesRepository,
    private readonly calls: CallJudge,
  ) {}

  /**
   * Makes a call.
   *
   * @param subject the id of the row that it is about
   * @param gone aborts the call when its caller disconnects, which says nothing about the platform
   * @throws {PlatformError} `rate-limited` during that pause, or as `call`
   */
  async make<T>(operation: OperationName, subject: string, call: () => Promise<T>, gone?: AbortSignal): Promise<T> {
    const beganAt = await this.admit(operation);
    const ended = (ending: Ending) => this.ended(operation, subject, beganAt, ending).catch(() => undefined);
    const answer = await call().catch(async (error: unknown) => {
      if (error instanceof PlatformError && !gone?.aborted) await ended(endingOf(error));
      throw error;
    });
    await ended(OK);
    return answer;
  }

  /** @returns the database's time @throws {PlatformError} `rate-limited` */
  async admit(operation: OperationName, tx?: Tx): Promise<Date> {
    const { now, pauses } = await this.pauses.readNow(tx);
    const limitedUntil = pauses.get(apiOf(operation))?.limitedUntil ?? now;
    const retryAfterMs = limitedUntil.getTime() - now.getTime();
    if (retryAfterMs > 0) throw new PlatformError('rate-limited', operation, { retryAfterMs });
    return now;
  }

  private async ended(operation: OperationName, subject: string, beganAt: Date, ending: Ending): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      const { now } = await this.pauses.readNow(tx);
      await this.calls.judge(tx, { operation, subject, beganAt, probes: [], refused: null }, ending, now);
    });
  }
}
