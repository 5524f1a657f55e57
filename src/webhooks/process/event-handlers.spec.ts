import type { EventType } from '../../platform/contract/wire-types.js';
import { type EventHandler, type Handled, pairHandlers } from './event-handlers.js';

class Sessions implements EventHandler {
  async handle(): Promise<Handled> {
    return 'processed';
  }
}
class People extends Sessions {}

const EXPECTED: EventType[] = ['SESSION_CREATED', 'SESSION_PROCESSING_FAILED', 'USER_CREATED'];

test('each event type has its handler', () => {
  const [sessions, people] = [new Sessions(), new People()];
  const handlers = pairHandlers(
    [
      [['SESSION_CREATED', 'SESSION_PROCESSING_FAILED'], sessions],
      [['USER_CREATED'], people],
    ],
    EXPECTED,
  );
  expect(EXPECTED.map((type) => handlers.get(type))).toEqual([sessions, sessions, people]);
});

test('the error names every event type without a handler or with several', () => {
  const declared: [EventType[], EventHandler][] = [
    [['SESSION_CREATED'], new Sessions()],
    [['SESSION_CREATED'], new People()],
  ];
  expect(() => pairHandlers(declared, EXPECTED)).toThrow(
    'SESSION_CREATED has several handlers (Sessions, People); SESSION_PROCESSING_FAILED has no handler; USER_CREATED has no handler',
  );
});
