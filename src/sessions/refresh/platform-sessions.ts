import { Injectable } from '@nestjs/common';
import { PlatformClient, type ProcessingSessionAnswer } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { SessionAnswer } from '../../platform/contract/wire-types.js';
import type { FetchResult } from '../../queue/due-rows/fetch-loop.js';

/** Fetches sessions; no error leaves. */
@Injectable()
export class PlatformSessions {
  constructor(
    private readonly contract: Contract,
    private readonly sessions: PlatformClient,
  ) {}

  /** Whether the contract says how a session is fetched. */
  get canFetchSession(): boolean {
    return this.contract.missingFor('getSession').length === 0;
  }

  /** Whether the contract says how a processing session is fetched. */
  get canFetchProcessingSession(): boolean {
    return this.contract.missingFor('getProcessingSession').length === 0;
  }

  fetchSession(sessionId: string, signal: AbortSignal): Promise<FetchResult<SessionAnswer>> {
    return resultOf(this.sessions.getSession(sessionId, { signal }));
  }

  fetchProcessingSession(processingId: string, signal: AbortSignal): Promise<FetchResult<ProcessingSessionAnswer>> {
    return resultOf(this.sessions.getProcessingSession(processingId, { signal }));
  }
}

/** Names what a call of the platform came to. @param call under way */
export async function resultOf<T>(call: Promise<T>): Promise<FetchResult<T>> {
  try {
    return { kind: 'answer', answer: await call };
  } catch (error) {
    if (!(error instanceof PlatformError)) return { kind: 'fault', code: 'internal' };
    switch (error.kind) {
      case 'not-found':
        return { kind: 'gone' };
      case 'unauthorized':
        return { kind: 'pause', code: 'platform-unauthorized' };
      case 'unreachable':
        return { kind: 'pause', code: 'platform-unreachable' };
      case 'rate-limited':
        return {
          kind: 'pause',
          code: 'rate-limited',
          ...(error.retryAfterMs !== undefined && { askedMs: error.retryAfterMs }),
        };
      case 'rejected':
        return { kind: 'fault', code: 'rejected' };
      case 'not-configured':
        return { kind: 'fault', code: 'not-configured' };
      case 'unknown-outcome':
        return {
          kind: 'fault',
          code: error.status !== undefined && error.status < 300 ? 'unreadable-answer' : 'platform-fault',
        };
    }
  }
}
