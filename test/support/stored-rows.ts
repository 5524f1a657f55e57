import type { World } from '../../harness/world/world.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { useClientsWithRecords } from '../client-records/clients-with-records.js';
import { submittedJobs } from '../compliance/submitted-jobs.js';
import { usePushes } from '../subscriptions/pushed.js';
import { SOAP } from '../world/mirrored-people.js';

interface Bundle {
  entry?: { resource: { id: string } }[];
}

/**
 * A world that stores rows of every kind: people, sessions with notes and insights, compliance jobs, imports, a
 * subscription with attempts, deliveries, keys, events, and audit entries.
 */
export function useStoredRows(world: World) {
  const { put, newSession, documentsOf, upload } = useClientsWithRecords(world);
  const pushes = usePushes(world);
  const jobs = submittedJobs(world);
  /** A session with a transcript and a recording, which one from a text has not. */
  async function newRecordedSession(): Promise<string> {
    const headers = { 'content-type': 'audio/wav' };
    const sent = await world.call<{ url: string }>('POST', '/v1/recordings', { body: Buffer.from('sound'), headers });
    const recording = { recordingUrls: [sent.body.url], recordingContent: 'Recording' };
    const body = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], input: { recording } };
    const made = await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 60 });
    await world.settle();
    return made.body.id;
  }
  /** Ids by the beginning of a route, or by the name of a parameter. */
  let ids: Record<string, string> = {};

  beforeEach(async () => {
    const { id: subscription } = await pushes.subscribe();
    await put('c-1', 'Cy', 'Lee', 'c-1@example.org');
    await put('c-2', 'Di', 'Lee');
    await newSession('c-2', 'They spoke.');
    const session = await newRecordedSession();
    const [document] = await documentsOf(session);
    const job = await jobs.post();
    await jobs.finish(job.body.jobId);
    const imported = await upload('', 'c-3,,Ed,Ng,p-1', 'c-4,,Fi,Ng,nobody');
    await world.advance('10 min');
    await world.settle();
    const [stored] = await world.sql<Record<string, string>>(
      `SELECT (SELECT max(id)::text FROM webhook_deliveries) AS delivery,
         (SELECT max(processing_id) FROM processing_sessions) AS processing`,
    );
    const found = await world.call<Bundle>('GET', '/fhir/DocumentReference?patient.identifier=c-1');
    ids = {
      '/v1/clients': 'c-1',
      '/v1/providers': 'p-1',
      '/v1/subscriptions': subscription,
      '/v1/sessions': session,
      '/v1/imports': imported,
      '/v1/compliance/jobs': job.body.id,
      '/v1/webhook-deliveries': stored?.delivery ?? '',
      '/fhir/DocumentReference': found.body.entry?.[0]?.resource.id ?? '',
      documentId: document?.documentId ?? '',
      processingId: stored?.processing ?? '',
      platformUserId: world.platform.usersOf('c-1')[0]?.userId ?? '',
    };
  });

  return {
    /** The id of a stored row, for a parameter of a route. */
    idOf(route: string, parameter: string): string {
      const [, id] = Object.entries(ids).find(([key]) => key === parameter) ??
        Object.entries(ids).find(([key]) => route.startsWith(`${key}/{`)) ?? ['', undefined];
      if (!id) throw new Error(`No stored row has an id for {${parameter}} of ${route}. Add one to stored-rows.ts.`);
      return id;
    },
  };
}
