import { Injectable } from '@nestjs/common';
import { Audit, BEGUN } from '../../access/audit/audit.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { confirmed } from '../../database/retries.js';
import { Problem } from '../../http/problem/problem.js';
import { afterCommit, pollUntil } from '../../http/request/waiting.js';
import { ResolvedPartiesRepository } from '../../people/store/resolved-parties.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { requireCapability } from '../../platform/contract/capabilities.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import { HandedOutUrls } from '../../platform/upload/handed-out-urls.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { DEBOUNCE_MS } from '../model/apply-fetch.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import type { SessionResponse } from '../model/session-view.js';
import { SessionReader } from '../read/session-reader.js';
import { createFault, createRequest, inputKind } from './create-rules.js';
import type { CreateSessionRequest, ResolveSessionRequest } from './create-session.dto.js';
import type { OpenRequest } from './request-row.js';
import { SessionRequestsRepository } from './session-requests.repository.js';

/** How long a caller waits for a request to be settled. */
interface Patience {
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
    private readonly platform: PlatformClient,
    private readonly reader: SessionReader,
    private readonly feedEvents: SessionFeedEvents,
    private readonly notifier: QueueNotifier,
    private readonly handedOut: HandedOutUrls,
    private readonly audit: Audit,
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
    const fault = createFault(dto, this.env, handedOut);
    if (fault) throw fault;
    const kept = await confirmed(() => this.keep(id, dto));
    if ('inTheWay' in kept) throw unsettled(kept.inTheWay);
    return afterCommit(
      () => this.settled(id, patience),
      () => kept,
    );
  }

  /** @returns the session that shows the request, kept now or by an earlier run; or the request that stands in its way */
  private keep(id: string, dto: CreateSessionRequest): Promise<SessionResponse | { inTheWay: OpenRequest }> {
    return this.database.transaction(async (tx) => {
      if ((await this.requests.state(id, tx)) === undefined) {
        const people = await this.people.require({ provider: dto.provider, client: dto.client ?? undefined }, tx);
        const inTheWay = await this.requests.keep(tx, id, createRequest(dto, people, id), inputKind(dto.input));
        if (inTheWay) return { inTheWay };
      }
      const session = await this.reader.show(id, tx);
      await this.audit.store(tx, BEGUN);
      return session;
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
    const { id } = known;
    if (action === 'create') {
      if (!(await this.requests.sendAgain(id))) throw await this.wrongState(id);
      return afterCommit(
        () => this.settled(id, patience),
        () => ({ ...known, state: 'Requested' as const }),
      );
    }
    if (action === 'link') await this.link(known, sessionId, patience.signal);
    else if (!(await this.requests.abandon(id))) throw await this.wrongState(id);
    return this.reader.show(id);
  }

  /** @returns the session as it is after the wait, or why it is none */
  private async settled(id: string, { seconds, signal }: Patience): Promise<SessionResponse | Problem> {
    this.notifier.notify('session-requests', 'requested');
    const session = await pollUntil(
      seconds,
      () => this.reader.show(id),
      ({ state }) => state !== 'Requested',
      signal,
    );
    if (session.state !== 'Rejected') return session;
    const detail =
      'The platform did not take this session; platformMessage has its words, if it gave any and this key may read them.';
    const extensions = { session: id, platformMessage: session.error?.message || null };
    return new Problem(400, session.error?.code ?? 'platform-rejected', detail, { extensions });
  }

  private async link(
    { id, providerUserId }: SessionResponse,
    sessionId: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const where = { pointer: '/sessionId' };
    if (sessionId === undefined) {
      const detail = "To link, name the platform's id of the session in sessionId.";
      throw new Problem(422, 'session-id-needed', detail, where);
    }
    if ((await this.requests.state(id)) !== 'Unknown') throw await this.wrongState(id);
    if (this.contract.canCall('getSession')) await this.checkLink(sessionId, providerUserId, signal);
    const outcome = await this.requests.link(id, sessionId);
    if (outcome === 'wrong-state') throw await this.wrongState(id);
    if (outcome === 'taken') {
      const detail = 'Another request holds this session of the platform; find out which of the two it is.';
      throw new Problem(409, 'session-taken', detail, where);
    }
    this.notifier.notify('sessions', 'due', DEBOUNCE_MS);
    await this.feedEvents.publish();
  }

  /** A link to a session that is not there, or is another provider's, is refused. */
  private async checkLink(sessionId: string, providerUserId: string | null, signal: AbortSignal): Promise<void> {
    const where = { pointer: '/sessionId' };
    const found = await this.platform.getSession(sessionId, { signal }).catch((error: unknown) => {
      if (error instanceof PlatformError && error.kind === 'not-found') {
        throw new Problem(422, 'not-on-platform', 'The platform knows no session with this id; correct it.', where);
      }
      const detail = 'The platform can not be asked about this session now; send the request again later.';
      throw new Problem(503, 'platform-unreachable', detail, { retryAfterSeconds: 5 });
    });
    if (found.providerUserId !== providerUserId) {
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
