import { Injectable, type OnModuleInit, SetMetadata } from '@nestjs/common';
import { DiscoveryService, Reflector } from '@nestjs/core';
import type pg from 'pg';
import { EVENT_TYPES, type EventType } from '../../platform/contract/wire-types.js';

/** A genuine, understood event out of the inbox. */
export interface InboxEvent {
  deliveryId: string;
  eventType: EventType;
  receivedAt: Date;
  /** Since when its delivery waits: another moment than `receivedAt` for one that was processed before. */
  waitingSince: Date;
  /** The parsed body; the fields that the spec states for the event type were found in it. */
  body: Record<string, unknown>;
}

/**
 * The outcome of an event. `ignored`: it concerns nothing that this service holds. `waiting`: it is handled again a second
 * later, without counting an attempt.
 */
export type Handled = 'processed' | 'ignored' | 'waiting';

/** A feature's handler of some event types; declared with `@HandlesEvents`. */
export interface EventHandler {
  /**
   * Writes what the event means within the transaction that settles it, in a savepoint; what throws is tried again. It
   * runs again for a repeat, a replay and after a crash, in any order, and must not touch other connections.
   */
  handle(event: InboxEvent, tx: pg.PoolClient): Promise<Handled>;

  /** The id of the platform that an event is about, of a type of which the specification does not say where it stands. */
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
  declared: Iterable<readonly [types: readonly EventType[], handler: EventHandler]>,
  expected: readonly EventType[] = EVENT_TYPES,
): Map<EventType, EventHandler> {
  const all = [...declared];
  const faults: string[] = [];
  const paired = expected.flatMap((type) => {
    const handlers = all.flatMap(([types, handler]) => (types.includes(type) ? [handler] : []));
    const names = handlers.map((each) => each.constructor.name).join(', ');
    if (handlers.length === 0) faults.push(`${type} has no handler`);
    if (handlers.length > 1) faults.push(`${type} has several handlers (${names})`);
    return handlers.map((handler) => [type, handler] as const);
  });
  if (faults.length === 0) return new Map(paired);
  throw new Error(`Every webhook event needs exactly one class with @HandlesEvents: ${faults.join('; ')}.`);
}

/** The handlers that Nest's discovery finds in the modules of the application. */
@Injectable()
export class EventHandlers implements OnModuleInit {
  private handlers: ReadonlyMap<EventType, EventHandler> = new Map();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly reflector: Reflector,
  ) {}

  /** @throws {Error} when an event type has no handler or several: the service must not start */
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
