import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { errorTrace } from '../../errors/error-trace.js';
import type { Principal } from '../identity/scopes.js';
import { Callers } from './callers.js';

/** How often to check that the receivers of open answers are still allowed. */
const POLL_INTERVAL_MS = 1_000;

/**
 * Sends answers piece by piece. Within a second after the caller's key or session has ended in any process, it cuts the
 * connection, so that a truncated answer does not look complete.
 */
@Injectable()
export class StreamedAnswers implements OnModuleDestroy {
  private readonly log = new Logger(StreamedAnswers.name);
  /** The open answers. */
  private readonly open = new Map<ServerResponse, Principal>();
  private readonly checking: NodeJS.Timeout;

  constructor(private readonly callers: Callers) {
    // While the database is unavailable, no piece can be read.
    this.checking = setInterval(() => void this.cutEnded().catch(() => undefined), POLL_INTERVAL_MS).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.checking);
  }

  /** Sends pieces of text until their end. */
  async send(reply: FastifyReply, by: Principal, pieces: AsyncIterable<string>): Promise<void> {
    this.open.set(reply.raw, by);
    reply.raw.once('close', () => this.open.delete(reply.raw));
    await reply.send(Readable.from(this.logged(pieces), { objectMode: false }));
  }

  /** Cuts the answers whose caller's key or session has ended. */
  async cutEnded(): Promise<void> {
    const asked = [...this.open];
    if (asked.length === 0) return;
    const allowed = await this.callers.stillAllowed(asked.map(([, by]) => by));
    for (const [answer, by] of asked) if (!allowed.has(by)) answer.destroy();
  }

  /** A truncated answer began with 200, so only the log says why. */
  private async *logged(pieces: AsyncIterable<string>): AsyncGenerator<string> {
    try {
      yield* pieces;
    } catch (error) {
      this.log.error({ msg: 'a streamed answer was interrupted', ...errorTrace(error) });
      throw error;
    }
  }
}
