import type { World } from '../world.js';

/** Rows of the platform's sessions and of requests, without the aliases of merged requests. */
const SHOWN = 'sessions AS s WHERE s.alias_of IS NULL';

const eventsOf = (type: string, id = 's.id') =>
  `(SELECT count(*) FROM feed_events AS e WHERE e.subject = 'sessions/' || ${id} AND e.type = '${type}')`;

/** What must hold of every row once all events were heard and no fault is left, by the exceptions in SQL. */
const INVARIANTS: Record<string, string> = {
  'a merged request is an alias of a session, and nothing is due about it': `sessions AS s WHERE
    (s.alias_of IS NOT NULL) <> (s.state = 'Merged') OR s.alias_of IS NOT NULL AND (s.session_id IS NOT NULL
      OR s.due_at IS NOT NULL OR s.request IS NOT NULL
      OR NOT EXISTS (SELECT FROM sessions AS shown
        WHERE shown.id = s.alias_of AND shown.session_id IS NOT NULL AND shown.alias_of IS NULL))`,
  'a merge is published once': `sessions AS s WHERE s.alias_of IS NOT NULL AND 1 <> (SELECT count(*) FROM feed_events AS e
    WHERE e.type = 'session.merged' AND e.subject = 'sessions/' || s.alias_of
      AND e.data ->> 'id' = s.id::text AND e.data ->> 'into' = s.alias_of::text)`,
  'a session is published as created once, before its other events': `${SHOWN} AND s.session_id IS NOT NULL
    AND ((SELECT array_agg(e.type ORDER BY e.id) FROM feed_events AS e WHERE e.subject = 'sessions/' || s.id
        AND e.type <> 'session.needs-review'))[1] IS DISTINCT FROM 'session.created'
    OR s.alias_of IS NULL AND s.session_id IS NOT NULL AND ${eventsOf('session.created')} <> 1`,
  'an end is published once it is shown, at most ten minutes after its event': `${SHOWN} AND s.state IN ('Done', 'Error')
    AND s.published_end IS DISTINCT FROM s.state AND s.publish_end_by IS NULL`,
  'a published end is in the feed': `${SHOWN} AND (s.published_end = 'Done' AND ${eventsOf('session.completed')} = 0
    OR s.published_end = 'Error' AND ${eventsOf('session.failed')} = 0)`,
  'Done is published once, unless it followed a failure': `${SHOWN} AND ${eventsOf('session.completed')}
    > 1 + ${eventsOf('session.failed')}`,
  'the last notes are published': `${SHOWN} AND s.notes_revision > 0 AND s.notes_revision IS DISTINCT FROM
    (SELECT max((e.data ->> 'notesRevision')::int) FROM feed_events AS e
      WHERE e.subject = 'sessions/' || s.id AND e.type = 'session.notes-ready')`,
  'a transcript is published': `${SHOWN} AND ${eventsOf('session.transcript-ready')} = 0
    AND EXISTS (SELECT FROM session_insights AS i WHERE i.session = s.id AND i.transcript IS NOT NULL)`,
  'an unknown request is published for review': `${SHOWN} AND s.state = 'Unknown' AND ${eventsOf('session.needs-review')} = 0`,
  'an ended session is due again only for notes, an update or its published end': `${SHOWN} AND s.state IN ('Done', 'Error')
    AND s.state_from = 'platform' AND s.due_at IS NOT NULL AND s.changes <= s.fetched_changes
    AND NOT (s.rechecks BETWEEN 1 AND 5 OR s.update_until IS NOT NULL OR s.publish_end_by IS NOT NULL)`,
  'a session that the platform does not find is looked up again': `${SHOWN} AND s.not_found_at IS NOT NULL AND s.due_at IS NULL`,
};

/** How late a lookup may be on a busy machine. */
const LATE = "now() - interval '20 seconds'";

/** Waits until nothing is overdue and all events were answered, and checks the rows of sessions against the feed. */
export async function checkFetchedSessions(world: World): Promise<void> {
  const open = `${SHOWN} AND s.fetched_at IS NOT NULL AND s.fault IS NULL AND s.changes > s.fetched_changes`;
  await world.reach('every event of a found session is answered by a fetch', async () => {
    return (await world.count(open)) === 0;
  });
  await world.reach('no session is overdue', async () => (await world.count(`sessions WHERE due_at < ${LATE}`)) === 0);
  await checkSessions(world);
  const aliases = await world.rows<{ id: string; into: string }>(
    'SELECT id, alias_of AS into FROM sessions WHERE alias_of IS NOT NULL ORDER BY id LIMIT 20',
  );
  for (const { id, into } of aliases) {
    const shown = await world.ehr.call<{ id: string }>('GET', `/v1/sessions/${id}`);
    world.oracle.same('the id of a merged request shows its session', shown?.body.id, into);
  }
}

/** Checks the rows of sessions against the feed. */
export async function checkSessions(world: World): Promise<void> {
  for (const [invariant, exceptions] of Object.entries(INVARIANTS)) {
    const found = await world.rows(`SELECT s.id, s.state, s.session_id AS "platformId" FROM ${exceptions} LIMIT 100`);
    world.oracle.none(invariant, found);
  }
}
