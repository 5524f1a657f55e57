import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { errorTrace } from '../../http/problem/error-trace.js';
import type { Principal } from '../identity/scopes.js';
import { Callers } from './callers.js';

/** Milliseconds between two looks whether those who get answers are still allowed to. */
const LOOK_MS = 1_000;

/**
 * Sends answers piece by piece. Nothing is sent once the caller's key or session has ended, in whichever process that was
 * done: the connection is cut, so that no answer looks whole that is not; one that waits is cut soon after.
 */
@Injectable()
export class StreamedAnswers implements OnModuleDestroy {
  private readonly log = new Logger(StreamedAnswers.name);
  /** The answers under way. */
  private readonly open = new Map<ServerResponse, Principal>();
  private readonly looking: NodeJS.Timeout;

  constructor(private readonly callers: Callers) {
    // While the database is away nothing is sent: that is asked before every piece.
    this.looking = setInterval(() => void this.cutEnded().catch(() => undefined), LOOK_MS).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.looking);
  }

  /** Sends pieces of text, each of which costs a query, until their end. */
  async send(reply: FastifyReply, by: Principal, pieces: AsyncIterable<string>): Promise<void> {
    this.open.set(reply.raw, by);
    reply.raw.once('close', () => this.open.delete(reply.raw));
    await reply.send(Readable.from(this.allowed(pieces, by), { objectMode: false }));
  }

  /** Cuts the answers whose caller's key or session has ended. */
  async cutEnded(): Promise<void> {
    const asked = [...this.open];
    if (asked.length === 0) return;
    const allowed = await this.callers.stillAllowed(asked.map(([, by]) => by));
    for (const [answer, by] of asked) if (!allowed.has(by)) answer.destroy();
  }

  /** An answer that breaks off has been answered with 200: the log alone can tell why. */
  private async *allowed(pieces: AsyncIterable<string>, by: Principal): AsyncGenerator<string> {
    try {
      for await (const piece of pieces) {
        await this.callers.requireAllowed(by);
        yield piece;
      }
    } catch (error) {
      this.log.error({ msg: 'a streamed answer broke off', ...errorTrace(error) });
      throw error;
    }
  }
}
