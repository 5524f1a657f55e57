/**
 * The events that the EHR reads, for docs/reference/events.md: what each means, and what a GET shows from the moment at
 * which it is published. `{id}` is the id in its subject, other names in braces are fields of its data.
 */
export const FEED_TYPES = {
  'person.synced': {
    means: 'The provider or client is in sync with the platform.',
    shows: '`GET /v1/{kind}s/{externalId}` has `sync.state` synced, and the `platformUserId`.',
  },
  'person.needs-review': {
    means: 'The provider or client needs a decision. Show it to an administrator (console, People).',
    shows: '`GET /v1/{kind}s/{externalId}` has `sync.state` needs-review, and `sync.error` with the `code`.',
  },
  'person.failed': {
    means:
      'The platform rejects the provider or client, and the call is not retried. Correct the data and PUT it again.',
    shows: '`GET /v1/{kind}s/{externalId}` has `sync.state` failed, and `sync.error` with the `code`.',
  },
  'person.deleted': {
    means: "The provider or client is deleted here, and the platform's user with it.",
    shows: '`GET /v1/{kind}s/{externalId}` has `sync.state` deleted, and neither names nor email.',
  },
  'person.renamed': {
    means: 'The provider or client was renamed; `formerExternalId` is the old id.',
    shows: '`GET /v1/{kind}s/{externalId}` has the person, and `GET /v1/{kind}s/{formerExternalId}` redirects to it.',
  },
  'person.merged': {
    means: 'Another client (`formerExternalId`) was merged into this one. This cannot be undone.',
    shows:
      '`GET /v1/clients/{formerExternalId}` redirects to this client, and `GET /v1/sessions?client={externalId}` lists the sessions of both.',
  },
  'user.created': {
    means: 'The platform created a user; the subject is its person, or `people/unknown-to-ehr`.',
    shows:
      '`GET /v1/people/platform-users/{userId}` has its `role`, and its `person`; null if the EHR does not know it.',
  },
  'session.created': {
    means: 'A session exists, from a request or from the recorder. Link it to your appointment.',
    shows: "`GET /v1/sessions/{id}` has the platform's `sessionId`, and the `state` that is known by then.",
  },
  'session.merged': {
    means:
      'The session `id` of your request is the session `into`, which an event of the platform had made first. Replace `id` by `into`.',
    shows: '`GET /v1/sessions/{id}` of either id has the session `into`, and lists have only that one.',
  },
  'session.processing-started': {
    means: 'The platform is processing the session.',
    shows: '`GET /v1/sessions/{id}` has `state` Processing.',
  },
  'session.notes-ready': {
    means:
      'New or changed notes were fetched, or a part of the answer cannot be read (`incomplete`). Read the notes. Needs `getSession` in the contract file.',
    shows: '`GET /v1/sessions/{id}/notes` has the notes of this `notesRevision`.',
  },
  'session.transcript-ready': {
    means: 'The transcript was fetched. Needs `getSession` in the contract file.',
    shows: '`GET /v1/sessions/{id}/transcript` has it.',
  },
  'session.completed': {
    means: 'Processing has ended. With `aiNotesEnabled` false there will be no notes: stop waiting.',
    shows:
      '`GET /v1/sessions/{id}` has `state` Done. `aiNotesEnabled` is final, unless no event has told it within ten minutes: then `aiNotesFinal` is false.',
  },
  'session.needs-review': {
    means: 'A request for a session has an unknown outcome. Resolve it, or show it to an administrator.',
    shows: '`GET /v1/sessions/{id}` has `state` Unknown, and the `choices` to resolve it.',
  },
  'session.failed': {
    means:
      'Processing failed, or the request was rejected. A second one follows only if the code of the error became known later.',
    shows:
      '`GET /v1/sessions/{id}` has `state` Error or, for a request, Rejected, and the `error` as far as it is known.',
  },
  'processing.notes-finished': {
    means: 'The platform finished notes of a processing session; the subject is the delivery that announced it.',
    shows: '`GET /v1/webhook-deliveries/{id}` has `state` processed.',
  },
  'processing.finished': {
    means: 'A processing session has ended.',
    shows: '`GET /v1/processing-sessions/{processingId}` has it; `answer` is null until it is fetched.',
  },
  'compliance.completed': {
    means: 'A check of PDFs has ended.',
    shows:
      '`GET /v1/compliance/jobs/{id}` has `state` Completed. It has the `result`, unless that of the event is null: then it is not fetched.',
  },
  'compliance.failed': {
    means: 'A check of PDFs failed, or the platform rejected it.',
    shows: '`GET /v1/compliance/jobs/{id}` has `state` Failed or Rejected, and for Rejected the `platformMessage`.',
  },
  'compliance.needs-review': {
    means:
      'A check of PDFs has an unknown outcome, or its result cannot be read. Resolve it, or show it to an administrator.',
    shows: '`GET /v1/compliance/jobs/{id}` has the `error` with the `code`, and the `choices`.',
  },
  'compliance.merged': {
    means:
      'The job `id`, which an event of the platform had made first, is the job `into` of your submission. Replace `id` by `into`.',
    shows: '`GET /v1/compliance/jobs/{id}` of either id has the job `into`, and lists have only that one.',
  },
  'smart-edit.completed': {
    means: 'The platform finished a smart edit. Only its id is known, so no route shows the subject.',
    shows: '`GET /v1/webhook-deliveries` lists the event with `subject` {jobId} and `state` processed.',
  },
  'smart-edit.failed': {
    means: 'A smart edit failed. Only its id is known, so no route shows the subject.',
    shows: '`GET /v1/webhook-deliveries` lists the event with `subject` {jobId} and `state` processed.',
  },
  'subscription.paused': {
    means:
      'Events are no longer pushed to an endpoint; `reason` says why: endpoint-gone (it answered 410), no-success (for five days) or cursor-expired. Fix the endpoint, then resume the subscription: no event is lost. After cursor-expired, read the current state, and choose `after`.',
    shows: '`GET /v1/subscriptions/{id}` has the `pausedReason`, and `state` paused or cursor-expired.',
  },
  'import.finished': {
    means: 'An import has ended. Check the rejected rows.',
    shows: '`GET /v1/imports/{id}` has its final `state` and counts.',
  },
} as const satisfies Record<string, { means: string; shows: string }>;

export type FeedType = keyof typeof FEED_TYPES;
