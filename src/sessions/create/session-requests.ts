import { Injectable } from '@nestjs/common';
import { Audit, BEGUN } from '../../audit/audit.js';
import { Env } from '../../config/env.js';
import { afterCommit } from '../../database/answer-after-commit.js';
import { Database } from '../../database/database.js';
import { pollUntil } from '../../database/poll-until.js';
import { PrismaService } from '../../database/prisma.service.js';
import { confirmed } from '../../database/retries.js';
import { Problem } from '../../http/problem/problem.js';
import { type Wait } from '../../http/request/waiting.js';
import { ResolvedPartiesRepository } from '../../people/store/resolved-parties.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { requireCapability } from '../../platform/contract/capabilities.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import { RequestResolver } from '../../platform/send/request-resolver.js';
import { HandedOutUrls } from '../../platform/upload/handed-out-urls.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { HELD } from '../../sending/hold-code.js';
import { SESSION_TABLE } from '../model/session-columns.js';
import type { SessionRow } from '../model/session-row.js';
import type { SessionResponse } from '../model/session-view.js';
import { SessionReader } from '../read/session-reader.js';
import { createFault, createRequest, inputKind } from './create-rules.js';
import type { CreateSessionRequest, ResolveSessionRequest } from './create-session.dto.js';
import { RequestOutcomes } from './request-outcomes.repository.js';
import { type BlockingSession, SessionRequestsRepository } from './session-requests.repository.js';

const ID_NEEDED = "To link, send the platform's id of the session in sessionId.";
const TAKEN = 'Another request is linked to this session. Find out which request it belongs to.';
const LINK_PROBLEMS = {
  idNeeded: new Problem('session-id-needed', ID_NEEDED, { pointer: '/sessionId' }),
  taken: new Problem('session-taken', TAKEN, { pointer: '/sessionId' }),
};

/** The EHR's requests for sessions. Each is committed first, then sent by a worker. */
@Injectable()
export class SessionRequests {
  private readonly resolver: RequestResolver<SessionRow>;

  constructor(
    private readonly prisma: PrismaService,
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly database: Database,
    private readonly people: ResolvedPartiesRepository,
    private readonly requests: SessionRequestsRepository,
    private readonly platform: PlatformClient,
    private readonly reader: SessionReader,
    private readonly notifier: QueueNotifier,
    private readonly handedOut: HandedOutUrls,
    private readonly audit: Audit,
    outcomes: RequestOutcomes,
  ) {
    this.resolver = new RequestResolver(
      {
        table: SESSION_TABLE,
        problems: LINK_PROBLEMS,
        unsettled: `state = 'Unknown'`,
        onResend: 'earlier_unknown = true, changed = true',
        onlyUnsettled: 'Only a request whose outcome is unknown can be resolved. Check the state of the session.',
        check: (row, sessionId, signal) => this.checkLink(row, sessionId, signal),
        settle: (tx, row, sessionId) => outcomes.settle(tx, row, sessionId),
        abandon: (tx, row) => outcomes.abandon(tx, row, 'An operator abandoned the request.'),
      },
      database,
      prisma,
      audit,
    );
  }

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
    return this.database.transaction(async (tx) => {
      if (!(await this.requests.isStored(tx, id))) {
        const people = await this.people.require(
          { provider: dto.provider, client: dto.client ?? undefined },
          await this.prisma.in(tx),
        );
        const body = createRequest(dto, people, id);
        const blocking = await this.requests.keep(tx, id, body, { inputKind: inputKind(dto.input), allowDuplicate });
        if (blocking) return { blocking };
      }
      const session = await this.reader.show(id, tx);
      await this.audit.store(await this.prisma.in(tx), BEGUN);
      return session;
    });
  }

  /**
   * Resolves a request whose outcome is unknown; a pending one can be abandoned.
   *
   * @throws {Problem} 404 `unknown-session`; 409 `wrong-state` or `session-taken`; 422 `session-id-needed`,
   *   `not-on-platform` or `other-provider`; 503; 504
   */
  async resolve(idOrAlias: string, { action, sessionId }: ResolveSessionRequest, wait: Wait): Promise<SessionResponse> {
    const row = await this.reader.find(idOrAlias);
    await this.resolver.resolve(row.id, action, sessionId, wait.signal);
    if (action === 'link') this.notifier.notify('sessions');
    if (action !== 'create') return this.reader.show(row.shownId);
    const sent = this.reader.view({ ...row, state: 'Requested' });
    return afterCommit(
      () => this.settled(row.shownId, wait),
      () => sent,
    );
  }

  /** @returns the session after the wait, or the problem that rejected it */
  private async settled(id: string, { seconds, signal }: Wait): Promise<SessionResponse | Problem> {
    this.notifier.notify('session-requests');
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
  private async checkLink({ providerUserId }: SessionRow, sessionId: string, signal: AbortSignal): Promise<void> {
    if (!this.contract.canCall('getSession')) return;
    const pointer = '/sessionId';
    const found = await this.platform.getSession(sessionId, { signal }).catch((error: unknown) => {
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

function blockedBy({ session, state, isOpen }: BlockingSession): Problem {
  const extensions = { session, state };
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
