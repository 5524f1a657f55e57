import type { World } from '../../harness/world/world.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import type { NotesResponse, SessionResponse } from '../../src/sessions/model/session-view.js';
import { SOAP } from '../world/mirrored-people.js';

/** Clients of p-1 and their sessions, which the platform processes automatically. */
export function useClientsWithRecords(world: World) {
  beforeEach(async () => {
    world.platform.set({ stepMs: 1 });
    await world.call('PUT', '/v1/providers/p-1', {
      body: { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Ruiz' },
      wait: 60,
    });
  });
  return {
    async put(id: string, firstName: string, lastName: string, email?: string) {
      const body = { firstName, lastName, email, providers: ['p-1'] };
      return world.call('PUT', `/v1/clients/${encodeURIComponent(id)}`, { body, wait: 60 });
    },
    /** Creates a session with notes. @returns its internal id */
    async newSession(client: string, text: string, externalTreatmentPlan = text): Promise<string> {
      const input = { text: { text } };
      const made = await world.call<SessionResponse>('POST', '/v1/sessions', {
        body: { provider: 'p-1', client, noteTemplateIds: [SOAP], input, externalTreatmentPlan },
        ...{ wait: 60, idempotencyKey: `session of ${client}` },
      });
      expect(made.status).toBe(201);
      await world.settle();
      return made.body.id;
    },
    documentsOf: async (session: string) =>
      (await world.call<NotesResponse>('GET', `/v1/sessions/${session}/notes`)).body.documents,
    /** Uploads a file of clients. @returns the import's id */
    async upload(query: string, ...lines: string[]): Promise<string> {
      const content = ['externalId,email,firstName,lastName,providers', ...lines].join('\n');
      const body = new FormData();
      body.append('clients', new Blob([content], { type: 'text/csv' }), 'clients.csv');
      const answer = await world.call<ImportResponse>('POST', `/v1/imports?kind=clients&${query}`, { body });
      expect(answer.status).toBe(202);
      return answer.body.id;
    },
  };
}
