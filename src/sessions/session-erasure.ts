import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../config/env.js';
import { type ErasedCopies, type ErasedPerson, ErasesCopies } from '../people/store/erasure.js';
import { RequestOutcomes } from './create/request-outcomes.repository.js';
import { SESSION_COLUMNS } from './model/session-columns.js';
import type { SessionRow } from './model/session-row.js';
import { areDeleted, SessionContentRepository } from './refresh/session-content.repository.js';

/** Erases the sessions of deleted clients. */
@Injectable()
export class SessionErasure {
  constructor(
    private readonly env: Env,
    private readonly content: SessionContentRepository,
    private readonly requests: RequestOutcomes,
  ) {}

  /** Removes the content of sessions whose clients were all deleted, if ERASE_NOTES_OF_DELETED_CLIENTS is set. */
  @ErasesCopies('notes, transcripts and answers')
  async erase(tx: PoolClient, { kind, platformUserIds }: ErasedPerson): Promise<ErasedCopies> {
    if (kind === 'provider' || this.env.ERASE_NOTES_OF_DELETED_CLIENTS === 'keep') return { rows: 0 };
    const { rows } = await tx.query<SessionRow>(
      `SELECT ${SESSION_COLUMNS} FROM sessions t WHERE client_user_ids && $1::text[] AND ${areDeleted('client_user_ids')}
       ORDER BY id FOR UPDATE`,
      [platformUserIds],
    );
    // A request in flight erases its body when it ends.
    const open = rows.filter(({ state, leaseOwner }) => state === 'Unknown' || (state === 'Requested' && !leaseOwner));
    for (const row of open) await this.requests.abandon(tx, row, 'Its client was deleted before it was sent.');
    const ids = rows.map(({ id }) => id);
    return { rows: await this.content.remove(tx, ids), sessions: rows.map(({ shownId }) => shownId) };
  }
}
