/** What the EHR has to know of: what each event means, as docs/reference/events.md says it. */
export const FEED_TYPES = {
  'person.synced': 'The platform has the provider or client as you want it.',
  'person.needs-review':
    'The provider or client needs a decision; `code` says why. Show it to an administrator (console, People).',
  'person.failed':
    'The platform rejects the provider or client, and the call is not repeated; `code` says why. Correct the data and PUT it again.',
  'person.deleted': "The provider or client is deleted here, and the platform's user with it.",
  'person.renamed': 'The provider or client has another id, as you asked; `formerExternalId` is the old one.',
  'person.merged':
    'The client stands for another one, too (`formerExternalId`); `platformUser` tells what happens to the user of that one: none, taken-over, kept or deleted.',
  'person.unmerged': 'The client is separate again from the one that stood for it (`survivorExternalId`).',
  'user.created': 'The platform made a user; the subject is the person it belongs to, or `people/unknown-to-ehr`.',
  'session.created': 'A session exists, also one that began in the recorder: link it to your appointment.',
  'session.processing-started': 'The platform works on the session.',
  'session.notes-completed': 'The platform made notes, each time that it makes some; wait for `session.notes-ready`.',
  'session.notes-ready': 'Other notes than before were fetched: read them.',
  'session.completed': 'Processing has ended; with `aiNotesEnabled` false no notes will come: stop waiting.',
  'session.needs-review': 'A request for a session got no answer: resolve it, or show it to an administrator.',
  'session.failed': 'Processing ended with an error, or the request was refused; the session says why.',
  'processing.notes-finished':
    'The platform finished notes of a processing session; the subject is the delivery that announced it.',
  'processing.finished': 'A processing session has ended.',
  'compliance.completed':
    'A check of PDFs has ended, and its result can be read at `result`; null if it is not fetched.',
  'compliance.failed': 'A check of PDFs failed, or the platform rejected it; the job says why.',
  'compliance.needs-review':
    'A check of PDFs got no answer, or its result cannot be read; `code` says which. Resolve it, or show it to an administrator.',
  'smart-edit.completed': 'A smart edit has ended. Nothing else is known of it: its subject has no route.',
  'smart-edit.failed': 'A smart edit failed; as `smart-edit.completed`.',
  'subscription.paused':
    'Events are no longer pushed to an endpoint; `reason` says why: endpoint-gone (it answered 410), no-success (for five days) or cursor-expired. Nothing is lost: correct it and resume it.',
  'import.finished': 'An import has ended, with its `state`: look at what was rejected.',
};

export type FeedType = keyof typeof FEED_TYPES;
