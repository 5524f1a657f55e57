import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../config/env.js';
import { type ErasedCopies, type ErasedPerson, ErasesCopies } from '../people/store/erasure.js';
import { SessionRequestsRepository } from './create/session-requests.repository.js';
import { areDeleted, SessionContentRepository } from './refresh/session-content.repository.js';

/** Erases the sessions of deleted clients. */
@Injectable()
export class SessionErasure {
  constructor(
    private readonly env: Env,
    private readonly content: SessionContentRepository,
    private readonly requests: SessionRequestsRepository,
  ) {}

  /** Removes the content of sessions whose clients were all deleted, if ERASE_NOTES_OF_DELETED_CLIENTS is set. */
  @ErasesCopies('notes, transcripts and answers')
  async erase(tx: PoolClient, { kind, platformUserIds }: ErasedPerson): Promise<ErasedCopies> {
    if (kind === 'provider' || this.env.ERASE_NOTES_OF_DELETED_CLIENTS === 'keep') return { rows: 0 };
    const { rows } = await tx.query<{ id: string }>(
      `SELECT id FROM sessions WHERE client_user_ids && $1::text[] AND ${areDeleted('client_user_ids')}
       ORDER BY id FOR UPDATE`,
      [platformUserIds],
    );
    const ids = rows.map(({ id }) => id);
    // A request in flight erases its body when it ends.
    for (const id of ids) await this.requests.end(tx, id, 'Its client was deleted before it was sent.');
    return { rows: await this.content.remove(tx, ids), sessions: ids };
  }
}
