import { Logger } from '@nestjs/common';
import { isDatabaseUnavailable } from '../errors/database-fault.js';
import { errorTrace } from '../errors/error-trace.js';
import type { Bind, Poller } from '../queue/notifier/poller.js';

/** Work that runs in up to `concurrency` slots of this process whenever it is triggered. */
export abstract class TriggeredLoop {
  protected readonly log = new Logger(this.constructor.name);
  protected readonly shutdown = new AbortController();
  /** The slots in use. */
  private readonly slots = new Set<Promise<void>>();
  private isTriggeredAgain = false;

  /** @param slotted its name for logs, spans and the poller, and its slots */
  protected constructor(
    private readonly slotted: { readonly name: string; readonly concurrency: number },
    private readonly poller: Pick<Poller, 'wakeIn'>,
  ) {}

  get name(): string {
    return this.slotted.name;
  }

  /** For the poller: when work is due. */
  abstract nextDue(bind: Bind): string | null;

  /** Works in one slot until nothing is due. */
  protected abstract runSlot(): Promise<void>;

  /** Starts a slot. If all are in use, one starts as soon as another ends. */
  trigger(): void {
    if (this.shutdown.signal.aborted) return;
    if (this.slots.size >= this.slotted.concurrency) {
      this.isTriggeredAgain = true;
      return;
    }
    const slot = this.runSlot()
      .catch((error: unknown) => {
        // The poller logs an unavailable database, once for all loops.
        if (isDatabaseUnavailable(error)) return;
        this.log.warn({ msg: `a claim failed (${this.name})`, ...errorTrace(error) });
      })
      .finally(() => {
        this.slots.delete(slot);
        this.poller.wakeIn(0); // finds the next row that will be due
        if (!this.isTriggeredAgain) return;
        this.isTriggeredAgain = false;
        this.trigger();
      });
    this.slots.add(slot);
  }

  /** Stops claiming, and aborts the work that can be aborted. */
  stop(): void {
    this.shutdown.abort();
  }

  /** Resolves when all slots are free. */
  async finished(): Promise<void> {
    while (this.slots.size > 0) await Promise.all(this.slots);
  }
}
