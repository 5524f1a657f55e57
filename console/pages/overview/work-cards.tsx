import { Link } from 'wouter';
import type { Schemas } from '../../api/client.js';
import { Facts } from '../../parts/layout.js';
import { duration, Moment, number } from '../../parts/values.js';
import { count, Figures } from './figures.js';

/** Webhooks that are not processed yet. */
export function InboxCard({ inbox }: { inbox: Schemas['InboxResponse'] | null }) {
  return (
    <Figures title="Webhooks" of={inbox}>
      {({ waiting, waitingSince, dead, notUnderstood, lastGenuineAt }) => (
        <Facts
          facts={{
            Waiting: count(waiting),
            'Oldest received': <Moment at={waitingSince} />,
            'Permanently failed': <Link href="/deliveries?state=dead">{count(dead)}</Link>,
            'Not understood': <Link href="/deliveries?state=not-understood">{count(notUnderstood)}</Link>,
            'Last genuine delivery': <Moment at={lastGenuineAt} />,
          }}
        />
      )}
    </Figures>
  );
}

/** Since when the oldest work of each kind has been due. */
export function OldestWorkCard({ work }: { work: Schemas['OldestWorkResponse'] | null }) {
  return (
    <Figures title="Oldest pending work" of={work}>
      {({ people, sessions, requests, imports, compliance }) => (
        <Facts
          facts={{
            People: <Moment at={people} />,
            'Sessions to fetch': <Moment at={sessions} />,
            'Requests for sessions': <Moment at={requests} />,
            Imports: <Moment at={imports} />,
            'Compliance jobs': <Moment at={compliance} />,
          }}
        />
      )}
    </Figures>
  );
}

/** How long notes take from the event that announces them until they are stored. */
export function NotesCard({ lag }: { lag: Schemas['NoteLagResponse'] | null }) {
  return (
    <Figures title="Note delivery time" of={lag}>
      {({ hours, notes, medianSeconds, p95Seconds, worstSeconds, awaitedSince }) => (
        <>
          {medianSeconds === null || p95Seconds === null || worstSeconds === null ? (
            <p className="quiet">No event led to new notes in the last {number(hours)} hours.</p>
          ) : (
            <p>
              Of the {number(notes)} notes of the last {number(hours)} hours: median{' '}
              <strong>{duration(medianSeconds)}</strong>, p95 <strong>{duration(p95Seconds)}</strong>, max{' '}
              <strong>{duration(worstSeconds)}</strong>.
            </p>
          )}
          {awaitedSince ? (
            <p>
              The oldest event without its notes was received <Moment at={awaitedSince} />.
            </p>
          ) : (
            <p>The notes of all events have been fetched.</p>
          )}
        </>
      )}
    </Figures>
  );
}
