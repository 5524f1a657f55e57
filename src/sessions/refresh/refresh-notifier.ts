import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { SESSION_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { DEBOUNCE_MS } from '../model/refresh-timing.js';

/** Milliseconds to which notification are rounded up: many sessions that settle at about the same time need one. */
const ROUNDING_MS = 100;

/** Notifies the workers that fetch sessions. */
@Injectable()
export class RefreshNotifier {
  constructor(
    private readonly notifier: QueueNotifier,
    private readonly clock: Clock,
  ) {}

  /** For rows that are due once they have settled. */
  notifySoon(): void {
    this.notifyAt(this.clock.now().getTime() + DEBOUNCE_MS);
  }

  /** @param moment milliseconds since the Unix epoch */
  notifyAt(moment: number): void {
    this.notifier.notify(SESSION_QUEUE, 'due', new Date(Math.ceil(moment / ROUNDING_MS) * ROUNDING_MS));
  }

  /** For work that is due now. */
  notify(): void {
    this.notifier.notify(SESSION_QUEUE, 'due');
  }
}
