import type { DocumentResponse, NotesResponse, SessionResponse } from '../model/session-view.js';
import { documentAsMarkdown } from './notes-markdown.js';

/** Any FHIR element. */
export type FhirElement = { [name: string]: string | number | boolean | FhirElement | (string | FhirElement)[] };

/** The systems of identifiers of the EHR. */
export const CLIENT_SYSTEM = 'urn:notebridge:client';
export const APPOINTMENT_SYSTEM = 'urn:notebridge:appointment';

/** LOINC code of a mental health note. */
const NOTE_TYPE: FhirElement = {
  coding: [{ system: 'http://loinc.org', code: '34904-3', display: 'Mental health Note' }],
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
    identifier: identifierOf('session', session.id),
    // FHIR forbids empty arrays.
    ...(resources.length > 0 && {
      entry: resources.map((resource) => ({ fullUrl: `urn:uuid:${resource.id as string}`, resource })),
    }),
  };
}

/**
 * Renders the current version of a document as a DocumentReference (hl7.org/fhir/R4/documentreference.html). Its id stays
 * the same for all versions. `meta` changes with every change of the session, so it never misses one of the document.
 */
export function documentReference(session: SessionResponse, document: DocumentResponse): FhirElement {
  const { clients, updatedAt, partnerAppointmentId: appointment } = session;
  // A note has one subject. The clients of a session with several are related to the note instead.
  const hasOneClient = clients.length === 1 && session.clientUserIds.length <= 1;
  const patients = clients.map((client) => patientOf(client));
  // An unfinished note is preliminary; a final note that changed is amended.
  const final = document.revision === 1 ? 'final' : 'amended';
  return {
    resourceType: 'DocumentReference',
    id: document.documentId,
    meta: { versionId: String(updatedAt.getTime()), lastUpdated: updatedAt.toISOString() },
    masterIdentifier: identifierOf('document-revision', `${document.documentId}/${document.revision}`),
    identifier: [identifierOf('platform-document', document.sessionDocumentId)],
    status: document.supersededAt === null ? 'current' : 'superseded',
    docStatus: session.state === 'Done' ? final : 'preliminary',
    type: NOTE_TYPE,
    ...(hasOneClient && { subject: patients[0] }),
    date: document.fetchedAt.toISOString(),
    author: [authorOf(session)],
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

function authorOf({ provider, providerUserId }: SessionResponse): FhirElement {
  if (provider !== null) return { type: 'Practitioner', identifier: identifierOf('provider', provider) };
  if (providerUserId !== null)
    return { type: 'Practitioner', identifier: identifierOf('platform-user', providerUserId) };
  return { type: 'Practitioner', display: 'Unknown' };
}

function identifierOf(system: string, value: string): FhirElement {
  return { system: `urn:notebridge:${system}`, value };
}
