import type { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import type { Principal } from '../identity/caller.js';

/** Seconds after which a reader that was refused may try again. */
const RETRY_SECONDS = 5;

/** Answers with server-sent events (WHATWG HTML §9.2): so many streams at once for each key, in this process. */
@Injectable()
export class EventStreams {
  private readonly open = new Map<string, number>();

  constructor(private readonly env: Env) {}

  /**
   * Sends a stream of events; its place is free again when the connection closes.
   *
   * @throws {Problem} 429 `too-many-streams`, before `stream` is called
   */
  async send(reply: FastifyReply, caller: Principal, stream: () => Readable | Promise<Readable>): Promise<void> {
    const taken = this.open.get(caller.id) ?? 0;
    if (taken >= this.env.EVENT_STREAMS_PER_KEY) throw tooManyStreams(taken);
    if (reply.raw.closed) return;
    this.open.set(caller.id, taken + 1);
    reply.raw.once('close', () => this.leave(caller.id));
    const events = await stream();
    await reply.header('content-type', 'text/event-stream').header('x-accel-buffering', 'no').send(events);
  }

  private leave(id: string): void {
    const left = (this.open.get(id) ?? 1) - 1;
    if (left > 0) this.open.set(id, left);
    else this.open.delete(id);
  }
}

function tooManyStreams(taken: number): Problem {
  const detail = `This key has ${taken} streams of events open, and may have no more; close one, or share it among its readers.`;
  return new Problem(429, 'too-many-streams', detail, { retryAfterSeconds: RETRY_SECONDS });
}
