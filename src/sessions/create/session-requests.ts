import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { confirmed } from '../../database/retries.js';
import { Problem } from '../../http/problem/problem.js';
import { afterCommit, pollUntil } from '../../http/request/waiting.js';
import { ResolvedPartiesRepository } from '../../people/store/resolved-parties.js';
import { requireCapability } from '../../platform/contract/capabilities.js';
import { Contract } from '../../platform/contract/contract.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { HandedOutUrls } from '../../platform/upload/handed-out-urls.js';
import { SESSION_REQUEST_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { correlationId } from '../model/correlation-id.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import { SessionReader } from '../read/session-reader.js';
import type { SessionResponse } from '../read/session-view.js';
import { PlatformSessions } from '../refresh/platform-sessions.js';
import { RefreshNotifier } from '../refresh/refresh-notifier.js';
import { createRequest, inputKind } from './create-request.js';
import { createFault } from './create-rules.js';
import type { CreateSessionRequest, ResolveSessionRequest } from './create-session.dto.js';
import { RequestOutcomesRepository } from './request-outcomes.repository.js';
import { requestedView } from './requested-view.js';
import { type OpenRequest, SessionRequestsRepository } from './session-requests.repository.js';

/** How long a caller waits for a request to be settled. */
export interface Patience {
  seconds: number;
  /** Aborted when the caller is gone. */
  signal: AbortSignal;
}

/** Sessions that the EHR asks for. The intent is committed first; a worker sends it. */
@Injectable()
export class SessionRequests {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly database: Database,
    private readonly people: ResolvedPartiesRepository,
    private readonly requests: SessionRequestsRepository,
    private readonly outcomes: RequestOutcomesRepository,
    private readonly platform: PlatformSessions,
    private readonly reader: SessionReader,
    private readonly feedEvents: SessionFeedEvents,
    private readonly refreshes: RefreshNotifier,
    private readonly notifier: QueueNotifier,
    private readonly clock: Clock,
    private readonly handedOut: HandedOutUrls,
  ) {}

  /**
   * Commits the request for a session and waits for what becomes of it.
   *
   * @param id ours, under which it is kept; an earlier run of the same request may have done so
   * @returns the session: `Requested` or `Unknown` while the platform's id is not known
   * @throws {Problem} 400 `validation` or `platform-rejected`; 409 `session-unsettled` or as {@link parties}; 422;
   *   501 `not-configured`
   */
  async create(id: string, dto: CreateSessionRequest, patience: Patience): Promise<SessionResponse> {
    requireCapability('session-create', this.contract, this.env);
    const handedOut = await this.handedOut.known('recording', dto.input.recording?.recordingUrls ?? []);
    const fault = createFault(dto, { privateHostsAllowed: this.env.privateHostsAllowed }, handedOut);
    if (fault) throw fault;
    const { inTheWay, body } = await confirmed(() => this.keep(id, dto));
    if (inTheWay) throw unsettled(inTheWay);
    return afterCommit(
      () => this.settled(id, patience),
      () => requestedView(id, dto, body, this.clock.now()),
    );
  }

  private keep(
    id: string,
    dto: CreateSessionRequest,
  ): Promise<{ inTheWay?: OpenRequest; body?: CreateTherapySessionRequest }> {
    return this.database.transaction(async (tx) => {
      if ((await this.requests.state(id, tx)) !== undefined) return {};
      const names = { provider: dto.provider, client: dto.client ?? undefined };
      const people = await this.people.require(names, tx);
      const body = createRequest(dto, people, correlationId(id, dto.partnerAppointmentId ?? undefined));
      return { inTheWay: await this.requests.keep(tx, { id, body, inputKind: inputKind(dto.input) }), body };
    });
  }

  /**
   * Settles a request whose outcome is unknown manually; one that has not been sent can be abandoned.
   *
   * @throws {Problem} 404 `unknown-session`; 409 `wrong-state` or `session-taken`; 422 `session-id-needed`,
   *   `not-on-platform` or `other-provider`; 503; 504
   */
  async resolve(
    idOrAlias: string,
    { action, sessionId }: ResolveSessionRequest,
    patience: Patience,
  ): Promise<SessionResponse> {
    const known = await this.reader.show(idOrAlias);
    const { id, providerUserId } = known;
    if (action === 'create') {
      if (!(await this.requests.sendAgain(id))) throw await this.wrongState(id);
      return afterCommit(
        () => this.settled(id, patience),
        () => ({ ...known, state: 'Requested' as const }),
      );
    }
    if (action === 'abandon') {
      if (!(await this.outcomes.abandon(id))) throw await this.wrongState(id);
    } else {
      if (sessionId === undefined) throw sessionIdNeeded();
      if ((await this.requests.state(id)) !== 'Unknown') throw await this.wrongState(id);
      await this.checkLink(sessionId, providerUserId, patience.signal);
      await this.link(id, sessionId);
    }
    return this.reader.show(id);
  }

  /** @returns the session as it is after the wait, or why it is none */
  private async settled(id: string, { seconds, signal }: Patience): Promise<SessionResponse | Problem> {
    this.notifier.notify(SESSION_REQUEST_QUEUE, 'requested');
    const session = await pollUntil(
      seconds,
      () => this.reader.show(id),
      ({ state }) => state !== 'Requested',
      signal,
    );
    return session.state === 'Rejected' ? rejected(session) : session;
  }

  private async link(id: string, sessionId: string): Promise<void> {
    const outcome = await this.outcomes.link(id, sessionId);
    if (outcome === 'wrong-state') throw await this.wrongState(id);
    if (outcome === 'taken') {
      const detail = 'Another request holds this session of the platform; find out which of the two it is.';
      throw new Problem(409, 'session-taken', detail, { pointer: '/sessionId' });
    }
    this.refreshes.notifySoon();
    await this.feedEvents.publish();
  }

  /** Where sessions can be read, a link to one that is not there, or is another provider's, is refused. */
  private async checkLink(sessionId: string, providerUserId: string | null, signal: AbortSignal): Promise<void> {
    if (!this.platform.canFetchSession) return;
    const result = await this.platform.fetchSession(sessionId, signal);
    const where = { pointer: '/sessionId' };
    if (result.kind === 'gone') {
      throw new Problem(422, 'not-on-platform', 'The platform knows no session with this id; correct it.', where);
    }
    if (result.kind !== 'answer') {
      const detail = 'The platform can not be asked about this session now; send the request again later.';
      throw new Problem(503, 'platform-unreachable', detail, { retryAfterSeconds: 5 });
    }
    if (result.answer.providerUserId !== providerUserId) {
      throw new Problem(422, 'other-provider', 'This session of the platform is another provider’s.', where);
    }
  }

  private async wrongState(id: string): Promise<Problem> {
    const { state } = await this.reader.find(id);
    const detail = 'Only a request whose outcome is unknown can be resolved; look at the state of the session.';
    return new Problem(409, 'wrong-state', detail, { extensions: { state } });
  }
}

function unsettled({ session, state }: OpenRequest): Problem {
  const detail =
    state === 'Unknown'
      ? 'A request for this appointment and provider got no answer; resolve that session first.'
      : 'A request for this appointment and provider is on its way; look at that session.';
  return new Problem(409, 'session-unsettled', detail, { extensions: { session, state } });
}

function rejected({ id, error }: SessionResponse): Problem {
  const detail = 'The platform did not take this session; platformMessage says why.';
  const extensions = { session: id, platformMessage: error?.message || null };
  return new Problem(400, error?.code ?? 'platform-rejected', detail, { extensions });
}

function sessionIdNeeded(): Problem {
  const detail = "To link, name the platform's id of the session in sessionId.";
  return new Problem(422, 'session-id-needed', detail, { pointer: '/sessionId' });
}
