import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Env } from '../config/env.js';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import { ClientData, type DataSubject, ERASED, type ErasedCopies } from '../people/store/client-data.js';
import { RequestOutcomes } from './create/request-outcomes.repository.js';
import { SESSION_COLUMNS } from './model/session-columns.js';
import type { SessionRow } from './model/session-row.js';
import { SessionRecords } from './read/session-records.js';
import { areDeleted, SessionContentRepository } from './refresh/session-content.repository.js';

const SEEN = 'a later fetch must not restore what was erased';

/** The sessions of clients: part of an export, and erased with the last of their clients. */
@Injectable()
export class SessionData implements OnModuleInit {
  constructor(
    private readonly prisma: PrismaService,
    private readonly env: Env,
    private readonly content: SessionContentRepository,
    private readonly requests: RequestOutcomes,
    private readonly records: SessionRecords,
    private readonly data: ClientData,
  ) {}

  onModuleInit(): void {
    this.data.register({
      ...{ section: 'sessions', item: 'session' },
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
    const sql = this.prisma.sql(tx);
    const { rows } = await sql.query<SessionRow>(
      `SELECT ${SESSION_COLUMNS} FROM sessions t WHERE client_user_ids && $1::text[] AND ${areDeleted('client_user_ids')}
       ORDER BY id FOR UPDATE`,
      [platformUserIds],
    );
    // A request in flight erases its body when it ends.
    const open = rows.filter(({ state, leaseOwner }) => state === 'Unknown' || (state === 'Requested' && !leaseOwner));
    for (const row of open) await this.requests.abandon(sql, row, 'Its client was deleted before it was sent.');
    const ids = rows.map(({ id }) => id);
    return { rows: await this.content.remove(tx, ids), sessions: rows.map(({ shownId }) => shownId) };
  }
}
