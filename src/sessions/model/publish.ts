import type { FeedType } from '../../words/feed-types.js';
import { FINAL_RANK, isBehind, PUBLISH_END_MS } from './apply-event.js';
import { hasEnded, type SessionRow } from './session-row.js';

/** An event of a session. */
export interface SessionFeedEvent {
  type: FeedType & `session.${string}`;
  state: string;
  code?: string | null;
  notesRevision?: number;
  /** Parts of the answer that could not be read completely. */
  incomplete?: string[];
  /** Of `session.merged`: the id that leads to the session from now on, and that of the session. */
  id?: string;
  into?: string;
}

/** What happened to a session beside the change of its row. */
export interface Happened {
  now: Date;
  /** The contract lets sessions be fetched, so that their ends wait for an answer. */
  canFetch: boolean;
  isNew?: boolean;
  notesChanged?: boolean;
  transcriptChanged?: boolean;
  /** Of the error that is shown. */
  code?: string | null;
  /** The id of the request whose row became an alias of this one. */
  merged?: string;
}

/**
 * What to publish after a change of a session: an event is published when a GET shows what it says. Pure.
 *
 * | after the change                                                           | event                        |
 * |----------------------------------------------------------------------------|------------------------------|
 * | the session is new                                                         | `session.created`            |
 * | its state became Processing, and no end was published                      | `session.processing-started` |
 * | notes changed, or another part of the answer is unreadable                 | `session.notes-ready`        |
 * | its transcript was stored or changed                                       | `session.transcript-ready`   |
 * | it shows Done, and whether there will be notes is final                    | `session.completed`, once    |
 * | it shows Error                                                             | `session.failed`, once       |
 * | the code of that error became known later                                  | `session.failed`, once more  |
 * | a request's row became an alias of it                                      | `session.merged`             |
 *
 * An end that only events say waits for an answer until `publishEndBy`. If nothing says whether there will be notes, so does
 * Done. Each end is published again only after the other one.
 *
 * @param before undefined for a new session
 * @returns the events in their order, and what the row remembers of its end
 */
export function publish(
  before: SessionRow | undefined,
  after: SessionRow,
  happened: Happened,
): { events: SessionFeedEvent[]; end: Pick<SessionRow, 'publishedEnd' | 'publishedCode' | 'publishEndBy'> } {
  const { state, notesRevision, incomplete } = after;
  const { isNew = false, notesChanged = false, transcriptChanged = false, merged } = happened;
  const isUnreadable = before !== undefined && incomplete.some((part) => !before.incomplete.includes(part));
  const isStarted = state === 'Processing' && before?.state !== 'Processing' && after.publishedEnd === null;
  const { event, ...end } = ended(after, happened);
  const events: (SessionFeedEvent | false | undefined)[] = [
    isNew && { type: 'session.created', state },
    isStarted && { type: 'session.processing-started', state },
    transcriptChanged && { type: 'session.transcript-ready', state },
    (notesChanged || isUnreadable) && { type: 'session.notes-ready', state, notesRevision, incomplete },
    event,
    merged !== undefined && { type: 'session.merged', state, id: merged, into: after.id },
  ];
  return { events: events.filter((each): each is SessionFeedEvent => typeof each === 'object'), end };
}

function ended(
  row: SessionRow,
  { now, canFetch, code = null }: Happened,
): Pick<SessionRow, 'publishedEnd' | 'publishedCode' | 'publishEndBy'> & { event?: SessionFeedEvent } {
  const { state, publishedEnd, publishedCode, aiNotesRank } = row;
  const isAnswered = row.stateFrom === 'platform' || !canFetch;
  const isOver = row.publishEndBy !== null && row.publishEndBy <= now;
  // If the events say more than the answer, only `endByEvents` ends the wait.
  const isMore = isBehind(row);
  const publishEndBy = isOver && !isMore ? null : row.publishEndBy;
  const event: SessionFeedEvent =
    state === 'Error' ? { type: 'session.failed', state, code } : { type: 'session.completed', state };
  if (!hasEnded(state) || !(isAnswered || isOver)) return { publishedEnd, publishedCode, publishEndBy };
  if (publishedEnd === state) {
    const isCodeNew = state === 'Error' && publishedCode === null && code !== null;
    const published = {
      publishedEnd,
      publishedCode: publishedCode ?? code,
      publishEndBy: isAnswered && !isMore ? null : publishEndBy,
    };
    return isCodeNew ? { ...published, event } : published;
  }
  if (state === 'Done' && aiNotesRank < FINAL_RANK && !isOver) {
    return { publishedEnd, publishedCode, publishEndBy: publishEndBy ?? new Date(now.getTime() + PUBLISH_END_MS) };
  }
  return {
    publishedEnd: state,
    publishedCode: state === 'Error' ? code : null,
    publishEndBy: isMore ? publishEndBy : null,
    event,
  };
}
