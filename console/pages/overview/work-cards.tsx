import { Link } from 'wouter';
import type { Schemas } from '../../api/client.js';
import { Facts } from '../../parts/layout.js';
import { duration, Moment, number } from '../../parts/values.js';
import { count, Figures } from './figures.js';

/** Webhooks on their way in. */
export function InboxCard({ inbox }: { inbox: Schemas['InboxResponse'] | null }) {
  return (
    <Figures title="Webhooks" of={inbox}>
      {({ waiting, waitingSince, dead, notUnderstood, rejected }) => (
        <Facts
          facts={{
            Waiting: count(waiting),
            'The oldest came': <Moment at={waitingSince} />,
            'Given up': <Link href="/deliveries?state=dead">{count(dead)}</Link>,
            'Not understood': <Link href="/deliveries?state=not-understood">{count(notUnderstood)}</Link>,
            'Not genuine, last hour': <Link href="/deliveries/refused">{count(rejected)}</Link>,
          }}
        />
      )}
    </Figures>
  );
}

/** Since when the oldest work of each kind has been due. */
export function OldestWorkCard({ work }: { work: Schemas['OldestWorkResponse'] | null }) {
  return (
    <Figures title="Oldest work that is due" of={work}>
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

/** How long notes take from the event that tells of them to their being stored. */
export function NotesCard({ lag }: { lag: Schemas['NoteLagResponse'] | null }) {
  return (
    <Figures title="From event to note" of={lag}>
      {({ hours, notes, medianSeconds, p95Seconds, worstSeconds, awaitedSince }) => (
        <>
          {medianSeconds === null || p95Seconds === null || worstSeconds === null ? (
            <p className="quiet">No event led to new notes in the last {number(hours)} hours.</p>
          ) : (
            <p>
              In the last {number(hours)} hours half of the notes were stored within{' '}
              <strong>{duration(medianSeconds)}</strong> of their event, 95 % within{' '}
              <strong>{duration(p95Seconds)}</strong>, and the slowest after <strong>{duration(worstSeconds)}</strong>{' '}
              (of {number(notes)}).
            </p>
          )}
          {awaitedSince ? (
            <p>
              The event that has waited longest for its notes came <Moment at={awaitedSince} />.
            </p>
          ) : (
            <p>No event waits for its notes.</p>
          )}
        </>
      )}
    </Figures>
  );
}
