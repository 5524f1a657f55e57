import { createHash } from 'node:crypto';
import type { DocumentResponse, NotesResponse, SessionResponse } from '../model/session-view.js';
import { documentAsMarkdown } from './notes-markdown.js';

/** Any FHIR element. */
export type FhirElement = { [name: string]: string | number | boolean | FhirElement | (string | FhirElement)[] };

/** The systems of identifiers of the EHR. */
export const CLIENT_SYSTEM = 'urn:notebridge:client';
export const APPOINTMENT_SYSTEM = 'urn:notebridge:appointment';

/** LOINC code of a mental health note, with its display in the R4 value set c80-doc-typecodes. */
const NOTE_TYPE: FhirElement = {
  coding: [{ system: 'http://loinc.org', code: '34904-3', display: 'Mental health Progress note' }],
  text: 'Therapy session note',
};

/**
 * Renders a session's notes as a FHIR R4 Bundle of type `collection` (hl7.org/fhir/R4): a DocumentReference for every
 * document, whose attachment is the note as Markdown.
 *
 * @param now timestamp of the bundle
 */
export function notesAsFhir(session: SessionResponse, notes: NotesResponse, now: Date): FhirElement {
  const resources = notes.documents.map((document) => documentReference(session, document));
  return {
    resourceType: 'Bundle',
    type: 'collection',
    timestamp: now.toISOString(),
    // FHIR forbids empty arrays.
    ...(resources.length > 0 && {
      entry: resources.map((resource) => ({ fullUrl: `urn:uuid:${resource.id as string}`, resource })),
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
  return { resourceType, id, meta, ...content };
}

/** A DocumentReference without `meta`. */
function contentOf(session: SessionResponse, document: DocumentResponse) {
  const { clients, partnerAppointmentId: appointment } = session;
  // A note has one subject. The clients of a session with several are related to the note instead.
  const hasOneClient = clients.length === 1 && session.clientUserIds.length <= 1;
  const patients = clients.map((client) => patientOf(client));
  const author = authorOf(session);
  // An unfinished note is preliminary; a final note that changed is amended.
  const final = document.revision === 1 ? 'final' : 'amended';
  return {
    resourceType: 'DocumentReference',
    id: document.documentId,
    masterIdentifier: identifierOf('document-revision', `${document.documentId}/${document.revision}`),
    identifier: [identifierOf('platform-document', document.sessionDocumentId)],
    status: document.supersededAt === null ? 'current' : 'superseded',
    docStatus: session.state === 'Done' ? final : 'preliminary',
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
  };
}

function patientOf(client: string): FhirElement {
  return { type: 'Patient', identifier: { system: CLIENT_SYSTEM, value: client } };
}

/** Undefined if the provider is unknown, or hidden from the caller. */
function authorOf({ provider, providerUserId }: SessionResponse): FhirElement | undefined {
  if (provider !== null) return { type: 'Practitioner', identifier: identifierOf('provider', provider) };
  if (providerUserId !== null)
    return { type: 'Practitioner', identifier: identifierOf('platform-user', providerUserId) };
  return undefined;
}

function identifierOf(system: string, value: string): FhirElement {
  return { system: `urn:notebridge:${system}`, value };
}
