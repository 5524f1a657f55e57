import type { World } from '../../harness/world/world.js';
import type { SimulatedSession } from '../../simulator/sessions/session.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { beginRegeneration, takeStep } from '../../simulator/sessions/session-run.js';
import type { NotesResponse, SessionResponse } from '../../src/sessions/model/session-view.js';
import { DAP, mirroredPeople, SOAP } from '../world/mirrored-people.js';

/** A problem document. */
export interface Problem {
  status: number;
  type: string;
  pointer?: string;
  platformMessage?: string | null;
  session?: string;
  state?: string;
  missing?: string[];
}

/** Sessions created in the platform's own application and announced by webhooks. p-1 and c-1 are mirrored. */
export function useArrivingSessions(world: World) {
  let people: Awaited<ReturnType<typeof mirroredPeople>>;
  beforeEach(async () => {
    people = await mirroredPeople(world);
  });
  const newSession = (more: Partial<SimulatedSession> = {}): SimulatedSession =>
    createSession(world.platform.simulator.state, {
      providerUserId: people.provider,
      clientUserIds: [people.client],
      noteTemplateIds: [SOAP, DAP],
      input: { kind: 'recording', urls: ['https://files.example.test/1.wav'], content: 'Recording' },
      date: '2026-03-01T09:00:00.000Z',
      partnerAppointmentId: undefined,
      ...more,
    });
  const toEnd = (session: SimulatedSession): void => {
    while (session.nextStep) takeStep(world.platform.simulator.state, session);
  };
  const show = async (id: string) => (await world.call<SessionResponse>('GET', `/v1/sessions/${id}`)).body;
  const notesOf = async (id: string) => (await world.call<NotesResponse>('GET', `/v1/sessions/${id}/notes`)).body;
  return {
    get provider() {
      return people.provider;
    },
    get client() {
      return people.client;
    },
    /** The user of provider p-2. */
    get other() {
      return people.other;
    },
    newSession,
    /** The platform's own record of a session. */
    onPlatform(sessionId: string | null): SimulatedSession {
      const session = world.platform.simulator.state.sessions.find(sessionId ?? '');
      if (!session) throw new Error('The platform has no such session.');
      return session;
    },
    toEnd,
    /** Has another session fetched, so that a later 404 is not that of a wrong URL, and waits for the next lookups. */
    async fetchAnother(): Promise<void> {
      await world.settle();
      await world.advance('1 s');
      const other = newSession();
      other.lookUps = world.platform.simulator.state.settings.hiddenLookUps;
      toEnd(other);
      await world.settle();
      await world.advance('1 h');
      await world.settle();
    },
    /** Has the platform write its notes again. */
    regenerate(session: SimulatedSession): void {
      beginRegeneration(world.platform.simulator.state, session, [SOAP]);
      while (session.nextStep) takeStep(world.platform.simulator.state, session);
    },
    show,
    notesOf,
    /** Settles the world and expects this state. */
    async shownAs(id: string, state: string): Promise<SessionResponse> {
      await world.settle();
      const session = await show(id);
      expect(session.state).toBe(state);
      return session;
    },
    /** Sends a webhook. */
    tell: (event: object) => world.platform.simulator.state.deliveries.send(event as never),
    /** Does `work` without webhooks. */
    unheard<T>(work: () => T): T {
      world.platform.set({ webhookDropRate: 1 });
      const result = work();
      world.platform.set({ webhookDropRate: 0 });
      return result;
    },
    /** Its notes, which must be of this generation, once the world has settled. */
    async read({ sessionId }: SimulatedSession, generation: number): Promise<NotesResponse> {
      await world.settle();
      const notes = await notesOf(sessionId);
      expect(texts(notes).filter((text) => text.includes(`(Generation ${generation}.)`))).not.toEqual([]);
      return notes;
    },
    /** Requests a lookup. */
    async refresh({ sessionId }: SimulatedSession): Promise<void> {
      const { status, body } = await world.call<object>('POST', '/v1/sessions/refreshes', {
        body: { session: sessionId },
      });
      expect([status, body]).toEqual([202, { sessions: 1 }]);
    },
    /** The number of getSession calls, of one status or of all. */
    fetches: (wanted?: number): number =>
      world.platform.simulator.state.arrivals
        .list()
        .filter(({ operation, status }) => operation === 'getSession' && (wanted ?? status) === status).length,
  };
}

/** The texts of all notes; none for an unknown session. */
export const texts = ({ documents = [] }: Partial<NotesResponse>): string[] =>
  documents.flatMap(({ notes }) => notes.map(({ text }) => text));
