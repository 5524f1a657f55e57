import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import type { Principal } from '../identity/scopes.js';
import { ApiKeys } from '../keys/api-keys.js';

/** An event of a stream. */
interface ServerSentEvent {
  id?: string;
  event: string;
  data: object;
}

/** Events that are sent together; none at all are a comment, which keeps an idle connection open. */
export type SentTogether = readonly ServerSentEvent[];

/** Milliseconds after which an idle stream sends a comment, so that no proxy closes it. */
export const KEEP_ALIVE_MS = 15_000;

/** Seconds after which a reader that was refused may try again. */
const RETRY_SECONDS = 5;

/** Milliseconds between two looks whether the keys of open streams are still taken. */
const LOOK_MS = 1_000;

/**
 * Answers with server-sent events (WHATWG HTML §9.2): so many streams at once for each key, in this process. Nothing is
 * sent once the key was revoked or has expired, in whichever process that was done, and an idle stream ends soon after.
 */
@Injectable()
export class EventStreams implements OnModuleDestroy {
  /** The answers under way, by the ids of their keys. */
  private readonly open = new Map<string, Set<ServerResponse>>();
  private readonly looking: NodeJS.Timeout;

  constructor(
    private readonly env: Env,
    private readonly keys: ApiKeys,
  ) {
    // While the database is away nothing is sent: that is asked before every event.
    this.looking = setInterval(() => void this.endDead().catch(() => undefined), LOOK_MS).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.looking);
  }

  /** Sends a stream until the connection ends. @throws {Problem} 429 `too-many-streams`, before `events` is called */
  async send(
    reply: FastifyReply,
    by: Principal,
    events: () => AsyncIterable<SentTogether> | Promise<AsyncIterable<SentTogether>>,
  ): Promise<void> {
    const open = this.open.get(by.id) ?? new Set();
    if (open.size >= this.env.EVENT_STREAMS_PER_KEY) {
      const detail = `This key has ${open.size} streams of events open, and may have no more; close one, or share it among its readers.`;
      throw new Problem(429, 'too-many-streams', detail, { retryAfterSeconds: RETRY_SECONDS });
    }
    if (reply.raw.closed) return;
    this.open.set(by.id, open.add(reply.raw));
    reply.raw.once('close', () => {
      open.delete(reply.raw);
      if (open.size === 0) this.open.delete(by.id);
    });
    const stream = Readable.from(this.textOf(await events(), by), { objectMode: false });
    await reply.header('content-type', 'text/event-stream').header('x-accel-buffering', 'no').send(stream);
  }

  private async *textOf(events: AsyncIterable<SentTogether>, { id }: Principal): AsyncGenerator<string> {
    for await (const sent of events) {
      if (!(await this.keys.aliveOf([id])).has(id)) return;
      yield sent.length === 0 ? ': still here\n\n' : sent.map(eventText).join('');
    }
  }

  private async endDead(): Promise<void> {
    if (this.open.size === 0) return;
    const alive = await this.keys.aliveOf([...this.open.keys()]);
    for (const [id, answers] of this.open) if (!alive.has(id)) for (const answer of answers) answer.end();
  }
}

function eventText({ id, event, data }: ServerSentEvent): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
