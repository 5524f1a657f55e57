import { Injectable } from '@nestjs/common';
import { Audit, BEGUN } from '../../audit/audit.js';
import { Env } from '../../config/env.js';
import { afterCommit } from '../../database/answer-after-commit.js';
import { pollUntil } from '../../database/poll-until.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { confirmed } from '../../database/retries.js';
import { Problem } from '../../http/problem/problem.js';
import { type Wait } from '../../http/request/waiting.js';
import { ResolvedPartiesRepository } from '../../people/store/resolved-parties.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { requireCapability } from '../../platform/contract/capabilities.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import { RequestCalls } from '../../platform/pauses/request-calls.js';
import { HandedOutUrls } from '../../platform/upload/handed-out-urls.js';
import { HELD } from '../../sending/hold-code.js';
import type { SessionResponse } from '../model/session-view.js';
import { type ReadSession, SessionReader } from '../read/session-reader.js';
import { createFault, createRequest, inputKind } from './create-rules.js';
import type { CreateSessionRequest, ResolveSessionRequest } from './create-session.dto.js';
import { type BlockingSession, SessionRequestsRepository } from './session-requests.repository.js';

const TAKEN = 'Another request is linked to this session. Find out which request it belongs to.';
const ONLY_UNKNOWN = 'Only a request whose outcome is unknown can be resolved. Check the state of the session.';

/** The EHR's requests for sessions. Each is committed first, then sent by a worker. */
@Injectable()
export class SessionRequests {
  constructor(
    private readonly prisma: PrismaService,
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly people: ResolvedPartiesRepository,
    private readonly requests: SessionRequestsRepository,
    private readonly platform: PlatformClient,
    private readonly calls: RequestCalls,
    private readonly reader: SessionReader,
    private readonly handedOut: HandedOutUrls,
    private readonly audit: Audit,
  ) {}

  /**
   * Commits a request for a session and waits for its outcome.
   *
   * @param id of the session here, the same for every run of one request
   * @param allowDuplicate allows another session for the same provider and appointment
   * @returns the session: `Requested` or `Unknown` while the platform's id is unknown
   * @throws {Problem} 400 `validation` or `platform-rejected`; 409 `session-unsettled`, `session-exists` or those of
   *   people; 422; 501 `not-configured`
   */
  async create(id: string, dto: CreateSessionRequest, allowDuplicate: boolean, wait: Wait): Promise<SessionResponse> {
    requireCapability('session-create', this.contract, this.env);
    const handedOut = await this.handedOut.known('recording', dto.input.recording?.recordingUrls ?? []);
    const fault = createFault(dto, this.env, handedOut);
    if (fault) throw fault;
    const stored = await confirmed(() => this.keep(id, dto, allowDuplicate));
    if ('blocking' in stored) throw blockedBy(stored.blocking);
    return afterCommit(
      () => this.settled(id, wait),
      () => stored,
    );
  }

  /** @returns the session, stored now or by an earlier run; or what blocks it */
  private keep(
    id: string,
    dto: CreateSessionRequest,
    allowDuplicate: boolean,
  ): Promise<SessionResponse | { blocking: BlockingSession }> {
    return this.prisma.transaction(async (tx) => {
      if (!(await this.requests.isStored(tx, id))) {
        const people = await this.people.require({ provider: dto.provider, client: dto.client ?? undefined }, tx);
        const body = createRequest(dto, people, id);
        const blocking = await this.requests.keep(tx, id, body, { inputKind: inputKind(dto.input), allowDuplicate });
        if (blocking) return { blocking };
      }
      const session = await this.reader.show(id, tx);
      await this.audit.store(tx, BEGUN);
      return session;
    });
  }

  /**
   * Resolves a request whose outcome is unknown; a pending one can be abandoned.
   *
   * @throws {Problem} 404 `unknown-session`; 409 `wrong-state` or `session-taken`; 422
   *   `not-on-platform` or `other-provider`; 503; 504
   */
  async resolve(id: string, { action, sessionId }: ResolveSessionRequest, wait: Wait): Promise<SessionResponse> {
    const row = await this.reader.find(id);
    if (action === 'link' && sessionId !== undefined) await this.link(row, sessionId, wait.signal);
    else {
      const resolve = (tx: Tx) =>
        action === 'create'
          ? this.requests.sendAgain(tx, row.id)
          : this.requests.abandon(tx, row.id, 'An operator abandoned the request.');
      const isDone = await this.prisma.transaction(async (tx) => {
        const isChanged = await resolve(tx);
        if (isChanged) await this.audit.store(tx, action === 'create' ? BEGUN : 'ok');
        return isChanged;
      });
      if (!isDone) throw await this.wrongState(row.id);
    }
    if (action !== 'create') return this.reader.show(row.id);
    const sent = this.reader.view({ ...row, state: 'Requested' });
    return afterCommit(
      () => this.settled(row.id, wait),
      () => sent,
    );
  }

  private async link(row: ReadSession, sessionId: string, signal: AbortSignal): Promise<void> {
    const pointer = '/sessionId';
    if (row.state !== 'Unknown') throw await this.wrongState(row.id);
    await this.checkLink(row, sessionId, signal);
    const outcome = await this.prisma.transaction(async (tx) => {
      const linked = await this.requests.link(tx, row.id, sessionId);
      if (linked === 'linked') await this.audit.store(tx);
      return linked;
    });
    if (outcome === 'wrong-state') throw await this.wrongState(row.id);
    if (outcome === 'taken') throw new Problem('session-taken', TAKEN, { pointer });
  }

  private async wrongState(id: string): Promise<Problem> {
    const { state } = await this.reader.find(id);
    return new Problem('wrong-state', ONLY_UNKNOWN, { extensions: { state } });
  }

  /** @returns the session after the wait, or the problem that rejected it */
  private async settled(id: string, { seconds, signal }: Wait): Promise<SessionResponse | Problem> {
    const session = await pollUntil(
      seconds,
      () => this.reader.show(id),
      ({ state, error }) => state !== 'Requested' || error?.code === HELD,
      signal,
    );
    if (session.state !== 'Rejected') return session;
    const detail =
      'The platform rejected this session. See platformMessage, if the platform sent one and this key may read it.';
    const extensions = { session: id, platformMessage: session.error?.message || null };
    const type = session.error?.code === 'abandoned' ? 'abandoned' : 'platform-rejected';
    return new Problem(type, detail, { extensions });
  }

  /** Rejects a link to a session that does not exist or belongs to another provider. */
  private async checkLink({ id, providerUserId }: ReadSession, sessionId: string, signal: AbortSignal): Promise<void> {
    if (!this.contract.canCall('getSession')) return;
    const pointer = '/sessionId';
    const ask = () => this.platform.getSession(sessionId, { signal });
    const found = await this.calls.make('getSession', id, ask, signal).catch((error: unknown) => {
      if (error instanceof PlatformError && error.kind === 'not-found') {
        throw new Problem('not-on-platform', 'The platform has no session with this id. Correct the id.', {
          status: 422,
          pointer,
        });
      }
      const detail = 'This session could not be looked up on the platform. Send the request again later.';
      throw new Problem('platform-unreachable', detail, { retryAfterSeconds: 5 });
    });
    if (found.providerUserId !== providerUserId) {
      throw new Problem('other-provider', 'This session belongs to another provider.', { pointer });
    }
  }
}

function blockedBy({ id, state, isOpen }: BlockingSession): Problem {
  const extensions = { session: id, state };
  if (!isOpen) {
    const detail =
      'This appointment and provider already have a session. Use it, or add allowDuplicate=true to the query.';
    return new Problem('session-exists', detail, { extensions });
  }
  const detail =
    state === 'Unknown'
      ? 'A request for this appointment and provider got no answer. Resolve that session first.'
      : 'A request for this appointment and provider is pending. Check that session.';
  return new Problem('session-unsettled', detail, { extensions });
}
