import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { OutcomeKeeper } from '../../platform/send/outcome-keeper.js';
import { SendOnce } from '../../platform/send/send-once.js';
import { DueParts } from '../../queue/due-rows/due-loop.js';
import { SessionSeal } from '../model/session-seal.js';
import { RequestOutcomes } from './request-outcomes.repository.js';
import type { RequestRow } from './request-row.js';

/** Maximum creates in flight per process. A caller waits for each. */
const MAX_CREATES = 8;

/** Sends the EHR's requests for sessions. */
@Injectable()
export class RequestSender extends SendOnce<RequestRow, { sessionId: string }> {
  constructor(
    outcomes: RequestOutcomes,
    platform: PlatformClient,
    seal: SessionSeal,
    contract: Contract,
    env: Env,
    keeper: OutcomeKeeper,
    parts: DueParts,
  ) {
    super(
      {
        name: 'session requests',
        queue: 'session-requests',
        table: { name: 'session_requests', key: 'session', lane: 0 },
        counter: { name: 'session_requests_total', help: 'Attempts to create a session by outcome' },
        concurrency: MAX_CREATES,
        timeoutMs: env.PLATFORM_TIMEOUT_SECONDS * 1_000,
        traced: ({ session }) => ({ 'notebridge.session': session }),
        isConfigured: () => contract.canCall('createSession'),
        send: ({ session, body }) => platform.createSession(seal.request.open(session, body)),
        storeAccepted: (tx, request, { sessionId }) => outcomes.accepted(tx, request, sessionId),
        storeRejected: (tx, request, message) => outcomes.rejected(tx, request, message),
        storeUnknown: (tx, request) => outcomes.unknown(tx, request),
        storeRequested: (tx, { session }) => outcomes.show(tx, session, 'Requested'),
        afterCommit: () => parts.notifier.notify('sessions', 'due'),
      },
      keeper,
      parts,
    );
  }
}
