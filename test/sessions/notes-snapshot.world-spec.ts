import pg from 'pg';
import type { NotesResponse } from '../../src/sessions/model/session-view.js';
import { useWorld } from '../world/use-world.js';
import { useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);

test('notes are read as they were at one moment, although they are replaced meanwhile', async () => {
  const session = sessions.newSession();
  sessions.toEnd(session);
  await world.settle();
  const { id } = await sessions.show(session.sessionId);
  const before = await sessions.notesOf(id);
  expect(before.documents).toHaveLength(2);
  const other = new pg.Client({ connectionString: world.database.url });
  await other.connect();
  await other.query('BEGIN; LOCK TABLE session_documents');
  const reading = world.call<NotesResponse>('GET', `/v1/sessions/${id}/notes`);
  await world.eventually('the notes wait for the lock', async () => {
    const { rowCount } = await other.query(
      "SELECT FROM pg_locks WHERE relation = 'session_documents'::regclass AND NOT granted",
    );
    return rowCount === 1;
  });
  await other.query('UPDATE sessions SET notes_revision = 9; DELETE FROM session_documents; COMMIT');
  await other.end();
  expect((await reading).body).toEqual(before);
});
