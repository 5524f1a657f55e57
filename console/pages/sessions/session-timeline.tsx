import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { api, type Schemas } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { Section } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { State, StateOf } from '../../parts/state.js';
import { Breakable, Moment, number } from '../../parts/values.js';
import { Template } from './note-text.js';

type Entry = Schemas['TimelineEntryResponse'];

/** Entries per request. */
const PAGE = 15;

/** The timeline of a session: events, the request and versions of notes, newest first. */
export function SessionTimeline({ id }: { id: string }) {
  const maySeeDeliveries = useScopes().includes('webhooks');
  return (
    <Section title="Timeline">
      <List
        name={['timeline', id]}
        read={(cursor) =>
          api.GET('/v1/sessions/{id}/timeline', { params: { path: { id }, query: { limit: PAGE, cursor } } })
        }
        empty="No entries."
        caption="Timeline, newest first"
        keyOf={({ key }) => key}
        columns={[
          ['When', ({ at }) => <Moment at={at} exact />],
          ['Entry', entryOf, 'text'],
          ['Result', outcomeOf],
          ['Details', (entry) => moreOf(entry, maySeeDeliveries), 'text'],
        ]}
      />
    </Section>
  );
}

function entryOf({ event, notes }: Entry): ReactNode {
  if (!event) return notes ? 'Notes stored' : 'Request of the EHR';
  return (
    <>
      Webhook{' '}
      <code>
        <Breakable name={event.eventType} />
      </code>
    </>
  );
}

function outcomeOf({ event, request, notes }: Entry): ReactNode {
  if (event) return <StateOf of="deliveryState" state={event.state} />;
  if (notes) return <State tone="good">{`revision ${number(notes.revision)}`}</State>;
  return request && <StateOf of="requestState" state={request.state} />;
}

function moreOf({ event, notes }: Entry, maySeeDeliveries: boolean): ReactNode {
  if (event) return <EventMore event={event} maySeeDeliveries={maySeeDeliveries} />;
  if (!notes) return null;
  return (
    <>
      by template <Template id={notes.noteTemplateId} name={notes.noteTemplateName} />
    </>
  );
}

function EventMore(props: { event: Schemas['TimelineEventResponse']; maySeeDeliveries: boolean }) {
  const { deliveryId, sentAt, reason, repeats } = props.event;
  const name = `delivery ${deliveryId}`;
  return (
    <>
      {props.maySeeDeliveries ? <Link href={`/deliveries/${deliveryId}`}>{name}</Link> : name}, sent{' '}
      <Moment at={sentAt} exact />
      {reason && (
        <>
          , <code>{reason}</code>
        </>
      )}
      {repeats > 0 && `, repeated ${repeats === 1 ? 'once' : `${number(repeats)} times`}`}
    </>
  );
}
