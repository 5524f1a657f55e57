import { until } from '../harness/until.js';
import { beginRegeneration } from '../simulator/sessions/session-run.js';
import { Retention } from '../src/operations/retention.js';
import type { RevisionsResponse } from '../src/sessions/model/session-view.js';
import { SOAP, useArrivingSessions } from './support/arriving-sessions.js';

describe('notes and transcripts that were kept long enough', () => {
  const world = useArrivingSessions({ NOTES_RETENTION_DAYS: '30', TRANSCRIPTS_RETENTION_DAYS: '10' });
  const { newSession, toEnd, read, refresh, rested, notesOf, sql } = world;
  const get = (path: string, accept?: string) => world.service.call('GET', path, accept ? { accept } : {});
  const audited = async (kind: string) =>
    (await get(`/v1/audit?action=retention.${kind}`)).json<{ items: { keyId: string }[] }>().items;
  const fetchesOf = async (sessionId: string) =>
    (await sql('SELECT answers FROM sessions WHERE session_id = $1', [sessionId]))[0]?.answers;

  it('go, the session stays and says so, and a later fetch brings back only what is new', async () => {
    const [old, young] = [newSession({ noteTemplateIds: [SOAP] }), newSession({ noteTemplateIds: [SOAP] })];
    for (const session of [old, young]) {
      toEnd(session);
      await read(session, 1);
      await rested(session);
    }
    const path = `/v1/sessions/${old.sessionId}`;
    const ages = `SET fetched_at = now() - interval '31 days' FROM sessions s WHERE s.session_id = $1`;
    await sql(`UPDATE session_insights i ${ages} AND i.session = s.id`, [old.sessionId]);
    await sql(
      `UPDATE document_revisions r SET fetched_at = now() - interval '31 days'
       FROM session_documents d JOIN sessions s ON s.id = d.session WHERE s.session_id = $1 AND r.document = d.id`,
      [old.sessionId],
    );

    const retention = world.service.app.get(Retention);
    expect(await retention.dropOld()).toMatchObject({ notes: 1, transcripts: 1 });
    expect(await audited('notes')).toMatchObject([{ keyId: 'system' }]);
    expect(await audited('transcripts')).toHaveLength(1);
    expect(await retention.dropOld()).toMatchObject({ notes: 0, transcripts: 0 });
    expect(await audited('notes')).toHaveLength(1);

    const isGone = async () => {
      const [document] = (await notesOf(old.sessionId)).documents;
      expect(document).toMatchObject({ revision: 1, notes: [], removedAt: expect.any(String) });
      const transcript = await get(`${path}/transcript`);
      expect([transcript.status, transcript.json().type]).toEqual([410, expect.stringMatching(/transcript-removed$/)]);
      return document?.documentId ?? '';
    };
    const documentId = await isGone();
    expect((await get(`${path}/notes`, 'text/markdown')).text).toContain('kept no longer');
    expect((await get(`${path}/notes`, 'application/fhir+json')).text).not.toContain('Composition');
    expect((await get(`${path}/insights`)).json()).toMatchObject({ topics: null, removedAt: expect.any(String) });
    expect((await get(`/v1/sessions/${young.sessionId}/transcript`)).status).toBe(200);

    const before = await fetchesOf(old.sessionId);
    await refresh(old);
    await until('another answer is stored', async () => (await fetchesOf(old.sessionId)) > before);
    await isGone();

    beginRegeneration(world.simulator.state, old, [SOAP]);
    toEnd(old);
    await read(old, 2);
    const { items } = (await get(`${path}/notes/${documentId}/revisions`)).json<RevisionsResponse>();
    expect(items).toMatchObject([
      { revision: 2, removedAt: null },
      { revision: 1, removedAt: expect.any(String), notes: [] },
    ]);
  });

  it('are kept when their client is deleted, unless a setting says otherwise', async () => {
    const session = newSession({ noteTemplateIds: [SOAP] });
    toEnd(session);
    await read(session, 1);
    expect((await world.service.call('DELETE', '/v1/clients/c-1')).status).toBe(202);
    expect((await notesOf(session.sessionId)).documents).toMatchObject([{ removedAt: null }]);
    expect((await world.show(session.sessionId)).clients).toEqual(['c-1']);
    await refresh(session);
    await read(session, 1);
  });
});
