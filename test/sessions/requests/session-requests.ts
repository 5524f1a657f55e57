import type { Platform } from '../../../harness/world/platform.js';
import type { CallOptions } from '../../../harness/world/request.js';
import type { World } from '../../../harness/world/world.js';
import type { FaultKind } from '../../../simulator/gate/fault-rule.js';
import type { SimulatedSession } from '../../../simulator/sessions/session.js';
import type { FeedEventResponse } from '../../../src/feed/feed.dto.js';
import type { Page } from '../../../src/http/request/page.js';
import { PlatformClient } from '../../../src/platform/clients/platform-client.js';
import type { SessionResponse } from '../../../src/sessions/model/session-view.js';
import { mirroredPeople, SOAP } from '../../world/mirrored-people.js';
import type { Problem } from '../arriving-sessions.js';

export const OPERATION = 'createSession';
export const TEXT = 'The client mentioned the quarry and of sleeping badly.';
export const PLAN = '# Goals\n\nSleep through the night.';

let appointments = 0;
const newAppointment = () => `appointment-${++appointments}`;

/** A valid request for a session, for an appointment of its own. */
export const usual = () => ({
  provider: 'p-1',
  client: 'c-1',
  noteTemplateIds: [SOAP],
  input: { text: { text: TEXT } },
  partnerAppointmentId: newAppointment(),
});

export type Wish = Partial<Record<keyof ReturnType<typeof usual>, unknown>> & Record<string, unknown>;

/** Sessions that the EHR requests. p-1 and c-1 are mirrored. */
export function useSessionRequests(world: World) {
  let provider: string;
  beforeEach(async () => {
    ({ provider } = await mirroredPeople(world));
  });
  const request = (query: string, body: Wish, options: CallOptions = {}) =>
    world.call<SessionResponse & Problem>('POST', `/v1/sessions${query}`, { body, wait: 60, ...options });
  const create = (wish: Wish, options?: CallOptions) => request('', wish, options);
  const show = async (id: string) => (await world.call<SessionResponse>('GET', `/v1/sessions/${id}`)).body;
  const injectFault = (rule: Parameters<Platform['injectFault']>[0]) =>
    world.platform.injectFault({ operation: OPERATION, ...rule });
  /** Turns the platform's webhooks on or off. */
  const webhooks = (on: boolean) => world.platform.set({ webhookDropRate: on ? 0 : 1 });
  const sessionsOf = (appointment: string): SimulatedSession[] =>
    world.platform.simulator.state.sessions
      .list()
      .filter(({ partnerAppointmentId }) => partnerAppointmentId === appointment);
  return {
    get provider() {
      return provider;
    },
    create,
    createDuplicate: (wish: Wish, options?: CallOptions) => request('?allowDuplicate=true', wish, options),
    resolve: (id: string, body: object, wait = 60) =>
      world.call<SessionResponse & Problem>('POST', `/v1/sessions/${id}/resolve`, { body, wait }),
    show,
    /** The number of requests that the platform received. */
    sent: () => world.platform.arrivals(OPERATION),
    injectFault,
    webhooks,
    /** The platform's sessions of an appointment. */
    sessionsOf,
    /** The platform's one session of an appointment. */
    sessionOf(appointment: string): SimulatedSession {
      const [session, ...more] = sessionsOf(appointment);
      if (!session || more.length > 0) throw new Error(`The platform has ${more.length + 1} sessions, or none.`);
      return session;
    },
    /** Settles the world and expects this state. */
    async shownAs(id: string, state: string): Promise<SessionResponse> {
      await world.settle();
      const session = await show(id);
      expect(session.state).toBe(state);
      return session;
    },
    /** The stored request of a session, which no answer shows: null once it has ended. */
    storedRequest: async (id: string) =>
      (await world.sql<{ request: Buffer | null }>('SELECT request FROM sessions WHERE id = $1', [id]))[0]?.request,
    /** A request whose answer was lost, before any event of its session. */
    async lost(
      wish: Wish = usual(),
      kind: FaultKind = 'commit-then-cut',
      send: typeof create = create,
    ): Promise<SessionResponse> {
      webhooks(false);
      injectFault({ kind });
      const { body, status } = await send(wish);
      webhooks(true);
      expect([status, body.state, body.sessionId]).toEqual([202, 'Unknown', null]);
      return body;
    },
    /** Keeps the platform's answers to requests from the process until `release`; they never time out. */
    withholdAnswers() {
      const platform = world.get(PlatformClient);
      const call = platform.createSession.bind(platform);
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      jest.spyOn(platform, OPERATION).mockImplementationOnce(async (body) => {
        const answer = await call(body);
        await released;
        return answer;
      });
      return { release: () => release() };
    },
    /** Sends a platform event about a session. */
    sendEvent(sessionId: string, partnerAppointmentId: unknown, more: object = {}): void {
      const eventType = 'SESSION_CREATED';
      const event = { eventType, sessionId, providerUserId: provider, partnerAppointmentId, aiNotesEnabled: null };
      world.platform.simulator.state.deliveries.send({ ...event, ...more } as never);
    },
    /** The session that the platform names so, once its events are handled. */
    async handled(sessionId: string): Promise<SessionResponse> {
      await world.settle();
      const { status, body } = await world.call<SessionResponse>('GET', `/v1/sessions/${sessionId}`);
      expect(status).toBe(200);
      return body;
    },
    /** The feed's events about a session, oldest first. */
    published: async (id: string): Promise<FeedEventResponse[]> =>
      (await world.call<Page<FeedEventResponse>>('GET', `/v1/events?limit=200&subject=sessions/${id}`)).body.items,
  };
}
