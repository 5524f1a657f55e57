import { Injectable, type OnModuleInit, SetMetadata } from '@nestjs/common';
import { DiscoveryService, Reflector } from '@nestjs/core';
import type pg from 'pg';
import { EVENT_TYPES, type EventType } from '../../platform/contract/wire-types.js';

/** A genuine, understood event from the inbox. */
export interface InboxEvent {
  deliveryId: string;
  eventType: EventType;
  receivedAt: Date;
  /** When its delivery became due: later than `receivedAt` if it was processed before. */
  waitingSince: Date;
  /** The parsed body; the fields that the spec states for the event type were found in it. */
  body: Record<string, unknown>;
}

/**
 * What a handler did with an event. `ignored` if it concerns nothing that this service holds. `waiting` if it should be
 * handled again in a second: its writes are rolled back, and no attempt is counted.
 */
export type Handled = 'processed' | 'ignored' | 'waiting';

/** A feature's handler of some event types; declared with `@HandlesEvents`. */
export interface EventHandler {
  /**
   * Writes the effects of the event within the transaction that records its outcome, in a savepoint. After an error it is
   * tried again. It runs again for a repeat, a replay and after a crash, in any order, and must not use other connections.
   */
  handle(event: InboxEvent, tx: pg.PoolClient): Promise<Handled>;

  /** The platform's id of what an event is about, for types whose fields the specification does not show. */
  subjectOf?(body: Record<string, unknown>): string | null;

  /** Called once after the commit of a batch in which this handler ran, e.g. to notify a queue. */
  afterCommit?(): void | Promise<void>;
}

const HANDLED_EVENT_TYPES = Symbol('notebridge:handled-event-types');

/** Declares the class as the one handler of these event types; it implements `EventHandler`. */
export function HandlesEvents(...eventTypes: EventType[]): ClassDecorator {
  return SetMetadata(HANDLED_EVENT_TYPES, eventTypes);
}

/** Pairs each event type with its handler. @throws {Error} naming every type without a handler or with several */
export function pairHandlers(
  declared: readonly (readonly [types: readonly EventType[], handler: EventHandler])[],
  expected: readonly EventType[] = EVENT_TYPES,
): Map<EventType, EventHandler> {
  const handlersOf = (type: EventType) => declared.flatMap(([types, each]) => (types.includes(type) ? [each] : []));
  const faults = expected.flatMap((type) => {
    const names = handlersOf(type).map((handler) => handler.constructor.name);
    if (names.length === 1) return [];
    return names.length === 0 ? `${type} has no handler` : `${type} has several handlers (${names.join(', ')})`;
  });
  if (faults.length > 0)
    throw new Error(`Every webhook event needs exactly one class with @HandlesEvents: ${faults.join('; ')}.`);
  return new Map(expected.flatMap((type) => handlersOf(type).map((handler) => [type, handler] as const)));
}

/** The handlers that Nest's discovery finds in the modules of the application. */
@Injectable()
export class EventHandlers implements OnModuleInit {
  private handlers: ReadonlyMap<EventType, EventHandler> = new Map();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly reflector: Reflector,
  ) {}

  /** @throws {Error} if an event type has no handler or several: the service must not start */
  onModuleInit(): void {
    const declared = this.discovery.getProviders().flatMap(({ metatype, instance }) => {
      const types = metatype && this.reflector.get<EventType[] | undefined>(HANDLED_EVENT_TYPES, metatype);
      return types ? [[types, instance as EventHandler] as const] : [];
    });
    this.handlers = pairHandlers(declared);
  }

  /** The handler of an event type. */
  of(eventType: EventType): EventHandler {
    const handler = this.handlers.get(eventType);
    if (!handler) throw new Error(`The webhook event ${eventType} has no handler; the service has not started yet.`);
    return handler;
  }
}
