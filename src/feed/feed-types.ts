/** The events that the EHR reads, with their meaning for docs/reference/events.md. */
export const FEED_TYPES = {
  'person.synced': 'The provider or client is in sync with the platform.',
  'person.needs-review':
    'The provider or client needs a decision; `code` says why. Show it to an administrator (console, People).',
  'person.failed':
    'The platform rejects the provider or client, and the call is not retried; `code` says why. Correct the data and PUT it again.',
  'person.deleted': "The provider or client is deleted here, and the platform's user with it.",
  'person.renamed': 'The provider or client was renamed; `formerExternalId` is the old id.',
  'person.merged':
    'Another client (`formerExternalId`) was merged into this one, which has its sessions from then on. This cannot be undone.',
  'user.created': 'The platform created a user; the subject is its person, or `people/unknown-to-ehr`.',
  'session.created': 'A session exists, from a request or from the recorder. Link it to your appointment.',
  'session.processing-started': 'The platform is processing the session.',
  'session.notes-completed': 'The platform finished some notes; may repeat. Wait for `session.notes-ready`.',
  'session.notes-ready': 'New or changed notes were fetched. Read them.',
  'session.completed': 'Processing has ended. With `aiNotesEnabled` false there will be no notes: stop waiting.',
  'session.needs-review': 'A request for a session has an unknown outcome. Resolve it, or show it to an administrator.',
  'session.failed': 'Processing failed, or the request was rejected; the session says why.',
  'processing.notes-finished':
    'The platform finished notes of a processing session; the subject is the delivery that announced it.',
  'processing.finished': 'A processing session has ended.',
  'compliance.completed': 'A check of PDFs has ended. Read its result at the path `result`; null if it is not fetched.',
  'compliance.failed': 'A check of PDFs failed, or the platform rejected it; the job says why.',
  'compliance.needs-review':
    'A check of PDFs has an unknown outcome, or its result cannot be read; `code` says which. Resolve it, or show it to an administrator.',
  'smart-edit.completed': 'The platform finished a smart edit. Only the id is known, so no route shows the subject.',
  'smart-edit.failed': 'A smart edit failed. No route shows the subject.',
  'subscription.paused':
    'Events are no longer pushed to an endpoint; `reason` says why: endpoint-gone (it answered 410), no-success (for five days) or cursor-expired. Fix the endpoint, then resume the subscription: no event is lost. After cursor-expired, read the current state, and choose `after`.',
  'import.finished': 'An import has ended, with its `state`. Check the rejected rows.',
};

export type FeedType = keyof typeof FEED_TYPES;
