import type { DocumentResponse, NotesResponse, SessionResponse } from '../model/session-view.js';
import { documentAsMarkdown } from './notes-markdown.js';

/** Any FHIR element. */
type FhirElement = { [name: string]: string | FhirElement | FhirElement[] };

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

function documentReference(session: SessionResponse, document: DocumentResponse): FhirElement {
  const appointment = session.partnerAppointmentId;
  const [client, another] = session.clients;
  // A note has one subject, which is omitted if the session has several clients, or none known to the EHR.
  const hasOneClient = client !== undefined && another === undefined && session.clientUserIds.length <= 1;
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
    ...(hasOneClient && { subject: { type: 'Patient', identifier: identifierOf('client', client) } }),
    date: document.fetchedAt.toISOString(),
    author: [authorOf(session)],
    description: `Therapy session note, template ${document.noteTemplateId}, revision ${document.revision}`,
    content: [
      {
        attachment: {
          contentType: 'text/markdown; charset=utf-8',
          data: Buffer.from(documentAsMarkdown(document), 'utf8').toString('base64'),
          title: 'Therapy session note',
          creation: document.fetchedAt.toISOString(),
        },
      },
    ],
    context: {
      related: [
        { identifier: identifierOf('session', session.id) },
        ...(appointment === null
          ? []
          : [{ type: 'Appointment', identifier: identifierOf('appointment', appointment) }]),
      ],
    },
  };
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
