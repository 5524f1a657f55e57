import type { SessionEvent, SessionEventType } from '../../platform/contract/wire-types.js';
import type { EventView } from './apply-event.js';
import type { NotedNews, SessionFeedEventType } from './feed-news.js';

/** What each event of the platform is called in the feed. */
const TYPE_OF: Record<SessionEventType, SessionFeedEventType> = {
  SESSION_CREATED: 'session.created',
  SESSION_PROCESSING_STARTED: 'session.processing-started',
  SESSION_PROCESSING_NOTES_COMPLETED: 'session.notes-completed',
  SESSION_PROCESSING_COMPLETED: 'session.completed',
  SESSION_PROCESSING_FAILED: 'session.failed',
};

/**
 * What the EHR is told of an event, whether the session can be fetched or not: of what happens once in a session's life
 * (creation and completion) once, of anything else each time, for a repeat may be another generation of notes. A session
 * of which any event comes first is a new one.
 *
 * @param known what is on record of the session
 */
export function feedEventsOf(
  { eventType, aiNotesEnabled }: SessionEvent,
  known: { isNew: boolean; before: EventView },
): NotedNews[] {
  const created: NotedNews[] = known.isNew ? [{ type: 'session.created', aiNotesEnabled }] : [];
  const isTold = eventType === 'SESSION_PROCESSING_COMPLETED' && known.before.state === 'Done';
  if (eventType === 'SESSION_CREATED' || isTold) return created;
  return [...created, { type: TYPE_OF[eventType], aiNotesEnabled }];
}
