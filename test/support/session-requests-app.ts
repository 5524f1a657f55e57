import { sealLinks } from '../../harness/user-links.js';
import { buildSimulator, type Simulator } from '../../simulator/app.js';
import { type FaultRule, readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { testSettings } from './app.js';
import { contractFile } from './contract-file.js';
import { freshDatabase, query, type TestDatabase } from './databases.js';
import { type SessionsApp, startSessions } from './sessions-app.js';
import { newSimulatedClient, newSimulatedProvider } from './simulator-call.js';

export const SOAP = '11111111-1111-4111-8111-111111111111';
export const DAP = '22222222-2222-4222-8222-222222222222';

/** A service with two mirrored providers, p-1 and p-2, and a client c-1 of the first; c-2 waits to be mirrored. */
export interface RequestsApp {
  readonly simulator: Simulator;
  readonly service: SessionsApp;
  readonly database: TestDatabase;
  /** The ids of p-1 and c-1 on the platform. */
  readonly provider: string;
  readonly client: string;
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Orders trouble for the next call of `createSession`, unless the rule says otherwise. */
  trouble(rule: Partial<FaultRule> & Pick<FaultRule, 'kind'>): void;
  /** From now on the platform's new events come, or do not. */
  webhooks(on: boolean): void;
  show(id: string): Promise<SessionResponse>;
  close(): Promise<void>;
}

/** @param without operations that the contract file leaves out */
export async function startRequestsApp(
  settings: Record<string, string> = {},
  without: string[] = [],
): Promise<RequestsApp> {
  // No webhook is late for the platform, however slow the machine is: a retry would be one event more.
  const platform = { stepMs: 0, processingEvents: false, webhookTimeoutMs: 60_000 };
  const simulator = await buildSimulator({ seed: 5, settings: platform });
  const database = await freshDatabase();
  const service = await startSessions(simulator, database.url, {
    PLATFORM_CONTRACT: await contractFile(without),
    PLATFORM_TIMEOUT_SECONDS: '60',
    ...settings,
  });
  const provider = await newSimulatedProvider(simulator);
  const client = await newSimulatedClient(simulator, provider);
  const sql = <Row>(text: string, values?: unknown[]) => query(database, text, values) as Promise<Row[]>;
  await sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state, step)
     VALUES (gen_random_uuid(), 'provider', 'p-1', '', '', $1, 'synced', NULL),
       (gen_random_uuid(), 'provider', 'p-2', '', '', $2, 'synced', NULL),
       (gen_random_uuid(), 'client', 'c-1', '', '', $3, 'synced', NULL),
       (gen_random_uuid(), 'client', 'c-2', '', '', NULL, 'waiting', NULL)`,
    [provider, await newSimulatedProvider(simulator, 'bo@example.test'), client],
  );
  await sealLinks(database.sql, testSettings('').DATA_KEYS ?? '');
  await sql(
    `INSERT INTO client_providers (client_id, position, provider_id)
     SELECT c.id, 0, p.id FROM people c, people p WHERE c.kind = 'client' AND p.external_id = 'p-1'`,
  );
  const { state } = simulator;
  const trouble: RequestsApp['trouble'] = (rule) =>
    state.faults.order([readFaultRule({ operation: 'createSession', count: 1, ...rule })]);
  return {
    simulator,
    service,
    database,
    provider,
    client,
    sql,
    trouble,
    webhooks: (on) => {
      state.settings = { ...state.settings, webhookDropRate: on ? 0 : 1 };
    },
    show: async (id) => (await service.call('GET', `/v1/sessions/${id}`)).json<SessionResponse>(),
    async close() {
      await service.close();
      await simulator.close();
      await database.drop();
    },
  };
}
