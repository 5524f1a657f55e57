import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Problem } from '../problem/problem.js';

/** The rest of a refused body never comes, because the connection closes with the answer. */
const CLOSING = { connection: 'close' };

/** One body in memory, from its first byte until its handler is done with it. */
export interface WaitingBody {
  /** Adds bytes that arrived. Bodies that arrive give way if there are too many. */
  add(bytes: number): void;
  /** Marks the body as complete, so that it no longer gives way. */
  complete(): void;
  /** Releases its bytes. */
  release(): void;
}

interface Arriving {
  /** Its bytes in memory. */
  bytes: number;
  /** When it must be complete, in monotonic milliseconds; undefined if its sender may take longer. */
  readonly dueMs: number | undefined;
  readonly refuse: (problem: Problem) => void;
}

/**
 * Limits the bytes of all bodies that wait in memory, in any parser. If there are too many, the arriving body
 * that began first gives way: senders who stall cannot keep out those who don't.
 */
export class BodyMemory {
  /** In the order in which they began. */
  private readonly arriving = new Set<Arriving>();
  /** Bytes of all bodies in memory. */
  bytes = 0;
  /** One timer for all bodies, because one for each would cost more than the rest of the watch. */
  private isTimed = false;

  /** @param limit bytes of all bodies together */
  constructor(
    private readonly limit: number,
    private readonly timeoutSeconds: number,
    private readonly clock: Clock,
  ) {}

  /**
   * Counts a body that a parser reads, which has to begin in this turn of the event loop, and has to end in time.
   *
   * @param refuse answers its sender
   * @param isKept the caller releases a complete body
   */
  watch(payload: NodeJS.ReadableStream, refuse: (problem: Problem) => void, isKept = false): WaitingBody {
    const end = () => {
      payload.off('data', count).off('end', end).off('close', close);
      if (isKept) body.complete();
      else body.release();
    };
    const close = () => {
      payload.off('data', count).off('end', end).off('close', close);
      body.release();
    };
    const refuseAndStop = (problem: Problem) => {
      close();
      refuse(problem);
    };
    const body = this.open(refuseAndStop, this.clock.monotonicMs() + this.timeoutMs);
    const count = (chunk: Buffer) => body.add(chunk.length);
    if (!this.isTimed) this.startTimer(this.timeoutMs);
    payload.on('data', count).once('end', end).once('close', close);
    return body;
  }

  /** Counts a body that its handler reads. @param refuse ends the reading */
  open(refuse: (problem: Problem) => void, dueMs?: number): WaitingBody {
    const release = () => {
      this.arriving.delete(arriving);
      this.bytes -= arriving.bytes;
      arriving.bytes = 0;
    };
    const body = {
      add: (bytes: number) => {
        arriving.bytes += bytes;
        this.bytes += bytes;
        this.giveWay();
      },
      complete: () => {
        this.arriving.delete(arriving);
      },
      release,
    };
    const arriving: Arriving = {
      bytes: 0,
      dueMs,
      refuse: (problem) => {
        body.release();
        refuse(problem);
      },
    };
    this.arriving.add(arriving);
    return body;
  }

  /** Ends a connection whose request was answered, if its body does not end in time: Node would read on without a limit. */
  cutUnread(raw: IncomingMessage): void {
    if (raw.complete) return;
    const cut = this.clock.after(this.timeoutMs, () => raw.destroy());
    raw.once('close', cut);
  }

  private get timeoutMs(): number {
    return this.timeoutSeconds * 1_000;
  }

  private startTimer(ms: number): void {
    this.isTimed = true;
    this.clock.after(ms, () => this.refuseLate());
  }

  private refuseLate(): void {
    this.isTimed = false;
    const nowMs = this.clock.monotonicMs();
    const late = 'The body did not arrive in time. Send it again.';
    for (const { dueMs, refuse } of this.arriving) {
      if (dueMs === undefined) continue;
      if (dueMs > nowMs) {
        this.startTimer(dueMs - nowMs);
        return;
      }
      refuse(new Problem('request-timeout', late, { headers: CLOSING }));
    }
  }

  private giveWay(): void {
    for (const oldest of this.arriving) {
      if (this.bytes <= this.limit) return;
      if (oldest.bytes === 0) continue; // such as the lists of a form whose file is complete
      const detail =
        'Too many bodies are arriving at the same time, and this one was among the slowest. Send it again.';
      oldest.refuse(new Problem('busy', detail, { retryAfterSeconds: 1, headers: CLOSING }));
    }
  }
}

/** The memory of all bodies except webhooks. */
@Injectable()
export class ApiBodies extends BodyMemory {
  constructor({ BODY_MEMORY_LIMIT, BODY_TIMEOUT_SECONDS }: Env, clock: Clock) {
    super(BODY_MEMORY_LIMIT, BODY_TIMEOUT_SECONDS, clock);
  }
}

/** The memory of webhooks, which no other body can take. Encrypted deliveries wait in `InboxAppender`, within its limits. */
@Injectable()
export class WebhookBodies extends BodyMemory {
  constructor({ WEBHOOK_MEMORY_LIMIT, BODY_TIMEOUT_SECONDS }: Env, clock: Clock) {
    super(WEBHOOK_MEMORY_LIMIT, BODY_TIMEOUT_SECONDS, clock);
  }
}
