import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { DueLoopDeps } from '../../due-rows/due-loop.js';
import { clientsOf } from '../../people/store/person-users.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { OutcomeWriter } from '../../platform/send/outcome-writer.js';
import { SendOnce } from '../../platform/send/send-once.js';
import { SentData } from '../../platform/send/sent-data.js';
import { Sending } from '../../sending/sending.js';
import { SESSION_TABLE } from '../model/session-columns.js';
import type { SessionRow } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { RequestOutcomes } from './request-outcomes.repository.js';

/** A row to send, with its request. */
type OpenRequest = SessionRow & { request: Buffer };

/** Maximum creates in flight per process. A caller waits for each. */
const MAX_CREATES = 8;

/** Sends the EHR's requests for sessions. */
@Injectable()
export class RequestSender extends SendOnce<OpenRequest, { sessionId: string }> {
  constructor(
    outcomes: RequestOutcomes,
    platform: PlatformClient,
    seal: SessionSeal,
    contract: Contract,
    env: Env,
    outcomeWriter: OutcomeWriter,
    sending: Sending,
    deps: DueLoopDeps,
    database: Database,
    sent: SentData,
  ) {
    super(
      {
        name: 'session requests',
        table: { ...SESSION_TABLE, onRequestedAgain: 'changed = true' },
        outcomes,
        counter: { name: 'session_requests_total', help: 'Attempts to create a session by outcome' },
        concurrency: MAX_CREATES,
        timeoutMs: env.PLATFORM_TIMEOUT_SECONDS * 1_000,
        isConfigured: () => contract.canCall('createSession'),
        send: async ({ id, shownId, clientUserIds, request }) => {
          const body = seal.request.open(id, request);
          const about = { client: await clientsOf(database.pool, clientUserIds), session: [shownId] };
          return sent.send('createSession', about, () => platform.createSession(body));
        },
        afterCommit: () => deps.notifier.notify('sessions'),
      },
      outcomeWriter,
      sending,
      deps,
    );
  }
}
