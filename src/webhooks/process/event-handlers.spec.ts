import { EVENT_TYPES } from '../../platform/contract/wire-types.js';
import { type EventHandler, EventHandlers } from './event-handlers.js';

const newHandler = (): EventHandler => ({ handle: async () => 'processed' });

test('each event type has its handler', () => {
  const handlers = new EventHandlers();
  const [first, second] = [newHandler(), newHandler()];
  const [type, ...others] = EVENT_TYPES;
  handlers.register(first, type);
  handlers.register(second, ...others);
  handlers.onModuleInit();
  expect(EVENT_TYPES.map((each) => handlers.of(each))).toEqual([first, ...others.map(() => second)]);
  expect(handlers.of(type)).toBe(first);
});

test('the start fails and names every event type without a handler', () => {
  const handlers = new EventHandlers();
  const [first, second, ...others] = EVENT_TYPES;
  handlers.register(newHandler(), ...others);
  expect(() => handlers.onModuleInit()).toThrow(`Webhook events without a handler: ${first}, ${second}.`);
});

test('a second handler of an event type is an error', () => {
  const handlers = new EventHandlers();
  handlers.register(newHandler(), 'SESSION_CREATED');
  expect(() => handlers.register(newHandler(), 'USER_CREATED', 'SESSION_CREATED')).toThrow(
    'The webhook event SESSION_CREATED has two handlers.',
  );
});
