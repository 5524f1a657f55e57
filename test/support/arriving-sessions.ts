import pg, { type QueryResult } from 'pg';
import { until } from '../../harness/until.js';
import { sealLinks } from '../../harness/user-links.js';
import { buildSimulator, type Simulator } from '../../simulator/app.js';
import type { SimulatedSession } from '../../simulator/sessions/session.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { NotesResponse, SessionResponse } from '../../src/sessions/model/session-view.js';
import { testSettings } from './app.js';
import { contractFile } from './contract-file.js';
import { freshDatabase, type TestDatabase } from './databases.js';
import { type SessionsApp, startSessions } from './sessions-app.js';
import { newSimulatedClient, newSimulatedProvider } from './simulator-call.js';

export const SOAP = '11111111-1111-4111-8111-111111111111';
export const DAP = '22222222-2222-4222-8222-222222222222';

/** No webhook is late for the platform, however slow the machine is: a retry would be one event more. */
const PLATFORM = { stepMs: 0, processingEvents: false, webhookTimeoutMs: 60_000 };

/** A platform whose sessions arrive here by webhooks; p-1 and c-1 are mirrored. */
interface ArrivingSessions {
  readonly simulator: Simulator;
  readonly service: SessionsApp;
  /** The ids of p-1 and c-1 on the platform. */
  readonly provider: string;
  readonly client: string;
  /** Stops the service and starts it with the contract that `contractFile` makes. */
  restart(...contract: Parameters<typeof contractFile>): Promise<void>;
  sql(text: string, values?: unknown[]): Promise<QueryResult['rows']>;
  /** A session that the platform's application made, which tells of it by webhooks. */
  newSession(more?: Partial<SimulatedSession>): SimulatedSession;
  toEnd(session: SimulatedSession): void;
  show(id: string): Promise<SessionResponse>;
  notesOf(id: string): Promise<NotesResponse>;
  shownAs(id: string, state: string): Promise<unknown>;
  /** The session with its notes of this generation, as the EHR reads them. */
  read(session: SimulatedSession, generation: number): Promise<NotesResponse>;
  /** Looked up on demand. */
  refresh(session: SimulatedSession): Promise<void>;
  /** Resolves when every webhook that the platform has to send was acknowledged and handled. */
  heardAll(): Promise<void>;
  /** Resolves when all that was told of a session is fetched: it changes no more by itself. */
  rested(session: SimulatedSession): Promise<void>;
  /** How often the platform was asked for a session; of those answered so, when a status is named. */
  fetches(status?: number): number;
}

/** To be called once in a suite: everything starts before its tests and ends after them. */
export function useArrivingSessions(settings: Record<string, string> = {}): ArrivingSessions {
  let simulator: Simulator;
  let database: TestDatabase;
  // Not the service's: that one has no patience with a slow machine.
  let pool: pg.Pool;
  let service: SessionsApp;
  let provider: string;
  let client: string;

  const start = async (...contract: Parameters<typeof contractFile>) => {
    service = await startSessions(simulator, database.url, {
      PLATFORM_CONTRACT: await contractFile(...contract),
      SESSION_REFRESH_AFTER_SECONDS: '1',
      SESSION_REFRESH_EVERY_SECONDS: '1',
      ...settings,
    });
  };
  const sql = async (text: string, values: unknown[] = []) => (await pool.query(text, values)).rows;

  beforeAll(async () => {
    simulator = await buildSimulator({ seed: 11, settings: PLATFORM });
    database = await freshDatabase();
    pool = new pg.Pool({ connectionString: database.url, max: 2 });
    await start();
    provider = await newSimulatedProvider(simulator);
    client = await newSimulatedClient(simulator, provider);
    await sql(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id) VALUES
         (gen_random_uuid(), 'provider', 'p-1', '', '', $1), (gen_random_uuid(), 'client', 'c-1', '', '', $2)`,
      [provider, client],
    );
    await sealLinks(pool, testSettings('').DATA_KEYS ?? '');
  });

  afterAll(async () => {
    await service?.close();
    await simulator?.close();
    await pool?.end();
    await database?.drop();
  });

  const heardAll = async () => {
    await simulator.state.deliveries.settled();
    const open = () => sql('SELECT 1 FROM webhook_deliveries WHERE due_at IS NOT NULL');
    await until('every delivery is handled', async () => (await open()).length === 0);
  };
  const show = async (id: string) => (await service.call('GET', `/v1/sessions/${id}`)).json<SessionResponse>();
  const notesOf = async (id: string) => (await service.call('GET', `/v1/sessions/${id}/notes`)).json<NotesResponse>();
  return {
    get simulator() {
      return simulator;
    },
    get service() {
      return service;
    },
    get provider() {
      return provider;
    },
    get client() {
      return client;
    },
    async restart(...contract) {
      await service.close();
      await start(...contract);
    },
    sql,
    newSession(more = {}) {
      const input = { kind: 'recording', urls: ['https://files.example.test/1.wav'], content: 'Recording' } as const;
      return createSession(simulator.state, {
        providerUserId: provider,
        clientUserIds: [client],
        noteTemplateIds: [SOAP, DAP],
        input: { ...input, urls: [...input.urls] },
        date: '2026-03-01T09:00:00.000Z',
        partnerAppointmentId: undefined,
        ...more,
      });
    },
    toEnd(session) {
      while (session.nextStep) takeStep(simulator.state, session);
    },
    show,
    notesOf,
    shownAs: (id, state) => until(`the session is ${state}`, async () => (await show(id)).state === state),
    read: (session, generation) =>
      until(`the notes of generation ${generation} are there`, async () => {
        const notes = await notesOf(session.sessionId);
        return texts(notes).some((text) => text.includes(`(Generation ${generation}.)`)) ? notes : null;
      }),
    async refresh(session) {
      const answer = await service.call('POST', '/v1/sessions/refreshes', { body: { session: session.sessionId } });
      expect([answer.status, answer.json()]).toEqual([202, { sessions: 1 }]);
    },
    heardAll,
    async rested({ sessionId }) {
      await heardAll();
      const covered = `SELECT 1 FROM sessions
        WHERE session_id = $1 AND wanted_generation = fetched_generation AND lease_owner IS NULL`;
      await until('every event is covered by a fetch', async () => (await sql(covered, [sessionId])).length > 0);
    },
    fetches: (wanted) =>
      simulator.state.arrivals
        .list()
        .filter(({ operation, status }) => operation === 'getSession' && (wanted ?? status) === status).length,
  };
}

/** Empty while the session is not known. */
export const texts = ({ documents = [] }: Partial<NotesResponse>): string[] =>
  documents.flatMap(({ notes }) => notes.map(({ text }) => text));
