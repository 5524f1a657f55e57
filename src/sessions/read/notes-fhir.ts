import { createHash } from 'node:crypto';
import type { DocumentResponse, NotesResponse, SessionResponse } from '../model/session-view.js';
import { documentAsMarkdown, sectionsOf } from './notes-markdown.js';

/** What a FHIR resource may hold; the shapes below say which fields. */
type FhirElement = { [name: string]: string | FhirElement | FhirElement[] };

/** LOINC's code of a mental health note. */
const NOTE_TYPE: FhirElement = {
  coding: [{ system: 'http://loinc.org', code: '34904-3', display: 'Mental health Note' }],
  text: 'Therapy session note',
};

/**
 * Renders a session's notes as a FHIR R4 Bundle of type `collection` (hl7.org/fhir/R4): for every document a
 * DocumentReference, whose attachment is the note as Markdown, and for every current one that is kept a Composition with a
 * section for each category. Superseded documents are there as DocumentReferences of status `superseded`.
 *
 * @param now when the bundle is made
 */
export function notesAsFhir(session: SessionResponse, notes: NotesResponse, now: Date): FhirElement {
  const resources = notes.documents.flatMap((document) => [
    documentReference(session, document),
    ...(isShownWhole(document) ? [composition(session, document)] : []),
  ]);
  return {
    resourceType: 'Bundle',
    type: 'collection',
    timestamp: now.toISOString(),
    identifier: ours('session', session.id),
    // FHIR has no empty arrays.
    ...(resources.length > 0 && {
      entry: resources.map((resource) => ({ fullUrl: `urn:uuid:${resource.id as string}`, resource })),
    }),
  };
}

/** A composition holds the notes themselves: there is none of what was superseded, is kept no longer, or does not open. */
function isShownWhole({ supersededAt, removedAt, unreadable }: DocumentResponse): boolean {
  return supersededAt === null && removedAt === null && unreadable === undefined;
}

/** What both resources of a document say. */
function common(session: SessionResponse, document: DocumentResponse) {
  // A note that is still being made is preliminary; one that was changed after it was final is amended.
  const final = document.revision === 1 ? 'final' : 'amended';
  const [client, another] = session.clients;
  // A note has one subject; with several clients, or none that the EHR named, it is left out.
  const hasOne = client !== undefined && another === undefined && session.clientUserIds.length <= 1;
  return {
    revision: ours('document-revision', `${document.documentId}/${document.revision}`),
    status: session.state === 'Done' ? final : 'preliminary',
    about: {
      type: NOTE_TYPE,
      ...(hasOne && { subject: { type: 'Patient', identifier: ours('client', client) } }),
      date: document.fetchedAt.toISOString(),
      author: [authorOf(session)],
    },
  };
}

function documentReference(session: SessionResponse, document: DocumentResponse): FhirElement {
  const { revision, status, about } = common(session, document);
  const appointment = session.partnerAppointmentId;
  return {
    resourceType: 'DocumentReference',
    id: document.documentId,
    masterIdentifier: revision,
    identifier: [ours('platform-document', document.sessionDocumentId)],
    status: document.supersededAt === null ? 'current' : 'superseded',
    docStatus: status,
    ...about,
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
        { identifier: ours('session', session.id) },
        ...(appointment === null ? [] : [{ type: 'Appointment', identifier: ours('appointment', appointment) }]),
      ],
    },
  };
}

function composition(session: SessionResponse, document: DocumentResponse): FhirElement {
  const { revision, status, about } = common(session, document);
  const section = sectionsOf(document.notes).map(({ category, title, lines }) => ({
    title: printable(title),
    code: {
      coding: [{ system: 'urn:notebridge:note-category', code: printable(category) }],
      text: printable(title),
    },
    text: { status: 'generated', div: narrative(lines) },
  }));
  return {
    resourceType: 'Composition',
    id: compositionId(document.documentId),
    identifier: revision,
    status,
    ...about,
    title: 'Therapy session note',
    relatesTo: [{ code: 'transforms', targetReference: { reference: `urn:uuid:${document.documentId}` } }],
    ...(section.length > 0 && { section }),
  };
}

function authorOf({ provider, providerUserId }: SessionResponse): FhirElement {
  if (provider !== null) return { type: 'Practitioner', identifier: ours('provider', provider) };
  if (providerUserId !== null) return { type: 'Practitioner', identifier: ours('platform-user', providerUserId) };
  return { type: 'Practitioner', display: 'Not known' };
}

function ours(system: string, value: string): FhirElement {
  return { system: `urn:notebridge:${system}`, value };
}

/** A UUID (RFC 9562, version 8) that always belongs to the same document. */
function compositionId(documentId: string): string {
  const hex = createHash('sha256').update(`composition of ${documentId}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** XHTML of a section: paragraphs, and lists for nested lines. */
function narrative(lines: { text: string; nestingLevel: number }[]): string {
  let html = '';
  let depth = 0;
  const nestTo = (level: number) => {
    html += '<ul><li>'.repeat(Math.max(0, level - depth)) + '</li></ul>'.repeat(Math.max(0, depth - level));
    depth = level;
  };
  for (const { text, nestingLevel } of lines) {
    const before = depth;
    nestTo(nestingLevel);
    if (nestingLevel === 0) html += `<p>${asXhtml(text)}</p>`;
    else html += `${nestingLevel <= before ? '</li><li>' : ''}${asXhtml(text)}`;
  }
  nestTo(0);
  return `<div xmlns="http://www.w3.org/1999/xhtml">${html}</div>`;
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** A text in one line, as FHIR's string and code want it. */
function printable(text: string): string {
  return [...text].filter(isXmlCharacter).join('').replace(/\s+/g, ' ').trim() || '-';
}

/** Escapes a text, and drops what XML 1.0 does not allow (§2.2). */
function asXhtml(text: string): string {
  const escaped = [...text]
    .filter(isXmlCharacter)
    .join('')
    .replace(/[&<>"]/g, (mark) => ENTITIES[mark] ?? mark);
  return escaped.trim() === '' ? '&#160;' : escaped.replace(/\r\n?|\n/g, '<br/>');
}

function isXmlCharacter(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return code === 0x9 || code === 0xa || code === 0xd;
  return !(code >= 0xd800 && code <= 0xdfff) && code !== 0xfffe && code !== 0xffff;
}
