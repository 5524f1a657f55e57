import { createHash } from 'node:crypto';
import type { Bundle, CodeableConcept, DocumentReference, Identifier, Period, Reference } from 'fhir/r4';
import { isMoment } from '../../text/moment.js';
import type { DocumentResponse, NotesResponse, SessionResponse } from '../model/session-view.js';
import { documentAsMarkdown } from './notes-markdown.js';

/** The systems of identifiers of the EHR. */
export const CLIENT_SYSTEM = 'urn:notebridge:client';
export const APPOINTMENT_SYSTEM = 'urn:notebridge:appointment';

/** LOINC code of a mental health note, with its display in the R4 value set c80-doc-typecodes. */
const NOTE_TYPE: CodeableConcept = {
  coding: [{ system: 'http://loinc.org', code: '34904-3', display: 'Mental health Progress note' }],
  text: 'Therapy session note',
};

/** A dateTime of FHIR with a time (hl7.org/fhir/R4/datatypes.html#dateTime). */
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-](0\d|1[0-3]):[0-5]\d|[+-]14:00)$/;

/** The longest duration that is shown as the end of a session. */
const MAX_DURATION_MS = 24 * 60 * 60_000;

/**
 * Renders a session's notes as a FHIR R4 Bundle of type `collection` (hl7.org/fhir/R4): a DocumentReference for every
 * document, whose attachment is the note as Markdown.
 *
 * @param now timestamp of the bundle
 */
export function notesAsFhir(session: SessionResponse, notes: NotesResponse, now: Date): Bundle {
  const resources = notes.documents.map((document) => documentReference(session, document));
  return {
    resourceType: 'Bundle',
    type: 'collection',
    timestamp: now.toISOString(),
    // FHIR forbids empty arrays.
    ...(resources.length > 0 && {
      entry: resources.map((resource) => ({ fullUrl: `urn:uuid:${resource.id}`, resource })),
    }),
  };
}

/**
 * Renders the current version of a document as a DocumentReference (hl7.org/fhir/R4/documentreference.html). Its id stays
 * the same for all versions. `lastUpdated` changes with every change of the session, so it never misses one of the
 * document. The version has a hash of the content, too, because names, scopes and removals change only what is shown.
 */
export function documentReference(session: SessionResponse, document: DocumentResponse) {
  const resource = contentOf(session, document);
  const hash = createHash('sha256').update(JSON.stringify(resource)).digest('hex').slice(0, 12);
  const { resourceType, id, ...content } = resource;
  const { updatedAt } = session;
  const meta = { versionId: `${updatedAt.getTime()}-${hash}`, lastUpdated: updatedAt.toISOString() };
  return { resourceType, id, meta, ...content } satisfies DocumentReference;
}

/** A DocumentReference without `meta`. */
function contentOf(session: SessionResponse, document: DocumentResponse) {
  const { clients, partnerAppointmentId: appointment } = session;
  // No note says which of several clients it is about, so they are related to it instead.
  const hasOneClient = clients.length === 1 && session.clientUserIds.length <= 1;
  const patients = clients.map((client) => patientOf(client));
  const author = authorOf(session);
  const period = periodOf(session);
  return {
    resourceType: 'DocumentReference',
    id: document.documentId,
    masterIdentifier: identifierOf('document-revision', `${document.documentId}/${document.revision}`),
    identifier: [identifierOf('platform-document', document.sessionDocumentId)],
    status: document.supersededAt === null ? 'current' : 'superseded',
    // The platform does not show that a person verified a note, which final and amended would mean.
    docStatus: 'preliminary',
    type: NOTE_TYPE,
    ...(hasOneClient && { subject: patients[0] }),
    date: document.fetchedAt.toISOString(),
    ...(author && { author: [author] }),
    description: `Therapy session note, template ${document.noteTemplateName ?? document.noteTemplateId}, revision ${document.revision}`,
    content: [
      {
        attachment: {
          contentType: 'text/markdown; charset=utf-8',
          data: Buffer.from(documentAsMarkdown(document), 'utf8').toString('base64'),
          title: document.noteTemplateName ?? 'Therapy session note',
          creation: document.fetchedAt.toISOString(),
        },
      },
    ],
    context: {
      ...(period && { period }),
      ...(appointment !== null && {
        encounter: [{ type: 'Encounter', identifier: { system: APPOINTMENT_SYSTEM, value: appointment } }],
      }),
      related: [
        { identifier: identifierOf('session', session.id) },
        ...(hasOneClient ? [] : patients),
        ...(appointment === null
          ? []
          : [{ type: 'Appointment', identifier: { system: APPOINTMENT_SYSTEM, value: appointment } }]),
      ],
    },
  } satisfies DocumentReference;
}

/**
 * The time of the session; undefined if it is unknown, or hidden from the caller. Of a date in another form than FHIR's,
 * such as without an offset, only the day.
 */
function periodOf({ date, sessionDurationMs: ms }: SessionResponse): Period | undefined {
  const [, day] = /^(\d{4}-\d\d-\d\d)($|[T ])/.exec(date ?? '') ?? [];
  if (date === null || !isMoment(day) || day.startsWith('0000')) return undefined;
  if (!DATE_TIME.test(date) || !isMoment(date)) return { start: day };
  const isKnown = ms !== null && ms > 0 && ms <= MAX_DURATION_MS;
  return { start: date, ...(isKnown && { end: new Date(Date.parse(date) + ms).toISOString() }) };
}

function patientOf(client: string): Reference {
  return { type: 'Patient', identifier: { system: CLIENT_SYSTEM, value: client } };
}

/** Undefined if the provider is unknown, or hidden from the caller. */
function authorOf({ provider, providerUserId }: SessionResponse): Reference | undefined {
  if (provider !== null) return { type: 'Practitioner', identifier: identifierOf('provider', provider) };
  if (providerUserId !== null)
    return { type: 'Practitioner', identifier: identifierOf('platform-user', providerUserId) };
  return undefined;
}

function identifierOf(system: string, value: string): Identifier {
  return { system: `urn:notebridge:${system}`, value };
}
