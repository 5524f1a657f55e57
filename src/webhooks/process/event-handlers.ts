import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { Tx } from '../../database/prisma.service.js';
import { EVENT_TYPES, type EventType } from '../../platform/contract/wire-types.js';
import type { PlatformEvent } from '../receive/platform-event.js';

/** A genuine, understood event from the inbox. */
export type InboxEvent<Type extends EventType = EventType> = Extract<PlatformEvent, { eventType: Type }> & {
  deliveryId: string;
  receivedAt: Date;
  /** When its delivery became due: later than `receivedAt` if it was processed before. */
  waitingSince: Date;
  /** Its receipts that no run has handled yet: 0 for the replay of a delivery that was handled. */
  news: number;
};

/**
 * The result of a handler. `waiting`, before it wrote anything, if it must be handled again in a second: no attempt is
 * counted.
 */
export type Handled = 'processed' | 'waiting';

/** A feature's handler of some event types. */
export interface EventHandler<Event extends InboxEvent = InboxEvent> {
  /**
   * Writes the effects of the event within the transaction that records its outcome. After an error it is tried again. It
   * runs again for a repeat, a replay and after a crash, in any order, and must not use other connections.
   */
  handle(event: Event, tx: Tx): Promise<Handled>;
}

/** The handlers of the features, one for each event type. */
@Injectable()
export class EventHandlers implements OnModuleInit {
  private readonly handlers = new Map<EventType, EventHandler>();

  /** Call it from the handler's constructor. @throws {Error} if a type has a handler already */
  register<Type extends EventType>(handler: EventHandler<InboxEvent<Type>>, ...types: Type[]): void {
    for (const type of types) {
      if (this.handlers.has(type)) throw new Error(`The webhook event ${type} has two handlers.`);
      this.handlers.set(type, handler);
    }
  }

  /** @throws {Error} if an event type has no handler: the service must not start */
  onModuleInit(): void {
    const unhandled = EVENT_TYPES.filter((type) => !this.handlers.has(type));
    if (unhandled.length > 0) throw new Error(`Webhook events without a handler: ${unhandled.join(', ')}.`);
  }

  /** The handler of an event type. */
  of(eventType: EventType): EventHandler {
    return this.handlers.get(eventType) as EventHandler;
  }
}
