import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Env } from '../config/env.js';
import type { Tx } from '../database/prisma.service.js';
import { ClientData, type DataSubject, ERASED, type ErasedCopies } from '../people/store/client-data.js';
import { RequestAttempts } from './create/request-attempts.repository.js';
import { areDeleted, SessionContentRepository } from './fetch/session-content.repository.js';
import { type LockedSession, WITH_TIME } from './model/sessions.repository.js';
import { SessionRecords } from './read/session-records.js';

/** Sessions of any of the users $1, locked, whose content must go: their clients were all deleted, or all that they ever had. */
const ERASABLE = `SELECT ${WITH_TIME} FROM sessions t
  WHERE ever_client_user_ids && $1::text[] AND alias_of IS NULL
    AND ${areDeleted("CASE WHEN client_user_ids = '{}' THEN ever_client_user_ids ELSE client_user_ids END")}
  ORDER BY id FOR UPDATE`;

const SEEN = 'a later fetch must not restore what was erased';

/** The sessions of clients: part of an export, and erased with the last of their clients. */
@Injectable()
export class SessionData implements OnModuleInit {
  constructor(
    private readonly env: Env,
    private readonly content: SessionContentRepository,
    private readonly requests: RequestAttempts,
    private readonly records: SessionRecords,
    private readonly data: ClientData,
  ) {}

  onModuleInit(): void {
    this.data.register({
      ...{ section: 'sessions', isList: true },
      tables: {
        sessions: { request: ERASED, facts: 'sessions stay findable; only the error message is erased' },
        session_documents: { fingerprint: SEEN },
        document_revisions: { notes: ERASED },
        session_insights: {
          ...{ transcript: ERASED, topics: ERASED, named_entities: ERASED, analytics: ERASED, fingerprint: SEEN },
        },
        processing_sessions: { answer: ERASED },
        webhook_deliveries: { body: ERASED, signature: ERASED },
      },
      read: async ({ externalId }) => this.records.of(externalId, await this.records.idsOf(externalId)),
      ...{ erase: (tx, person) => this.erase(tx, person), erased: 'notes, transcripts, answers and webhooks' },
    });
  }

  /** Removes the content of sessions whose clients were all deleted, if ERASE_NOTES_OF_DELETED_CLIENTS is set. */
  private async erase(tx: Tx, { kind, platformUserIds }: DataSubject): Promise<ErasedCopies> {
    if (kind === 'provider' || this.env.ERASE_NOTES_OF_DELETED_CLIENTS === 'keep') return { rows: 0 };
    const rows = await tx.$queryRawUnsafe<LockedSession[]>(ERASABLE, platformUserIds);
    // An attempt in flight erases the request when it ends.
    const open = rows.filter(
      ({ state, attemptedAt }) => state === 'Unknown' || (state === 'Requested' && attemptedAt === null),
    );
    const error = { code: 'abandoned', message: 'Its client was deleted before it was sent.' };
    for (const row of open) await this.requests.reject(tx, row, error);
    const ids = rows.map(({ id }) => id);
    return { rows: await this.content.remove(tx, ids), sessions: ids };
  }
}
