import type { Draft } from './draft.js';
import { PEOPLE, PERSON_WORD } from './fit-values.js';
import { ODD_BODIES, ODD_TEXTS, pick } from './odd-values.js';

const PDF = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';

/** A form with the parts of the route, some of them broken. */
export function multipart(draft: Draft, path: string): Buffer {
  const { random, headers } = draft;
  const boundary = `b${random.hex(12)}`;
  headers['content-type'] = `multipart/form-data; boundary=${draft.odd('boundary', 0.03) ? 'other' : boundary}`;
  const parts = path.includes('compliance') ? pdfParts(draft) : importParts(draft);
  const body = parts.map(({ name, file, type, content }) =>
    Buffer.concat([
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file === undefined ? '' : `; filename="${file}"`}\r\n` +
          `${type ? `Content-Type: ${type}\r\n` : ''}\r\n`,
      ),
      content,
      Buffer.from('\r\n'),
    ]),
  );
  return Buffer.concat([...body, Buffer.from(draft.odd('no end', 0.03) ? '' : `--${boundary}--\r\n`)]);
}

interface Part {
  readonly name: string;
  readonly file?: string;
  readonly type?: string;
  readonly content: Buffer;
}

const inHeader = (text: string): string => text.slice(0, 500).replace(/["\r\n\0]/g, '_');

function pdfParts(draft: Draft): Part[] {
  const { random } = draft;
  const parts: Part[] = Array.from({ length: 1 + random.below(2) }, (_, n) => ({
    name: draft.odd('part', 0.1) ? inHeader(pick(random, ODD_TEXTS)) : n === 0 ? 'files' : `file-${n}`,
    file: draft.odd('file name', 0.1) ? inHeader(pick(random, ODD_TEXTS)) : 'a.pdf',
    type: draft.odd('part type', 0.1) ? 'text/html' : 'application/pdf',
    content: draft.odd('part body', 0.15) ? pick(random, ODD_BODIES) : Buffer.from(PDF),
  }));
  if (random.chance(0.3))
    parts.push({
      name: 'criteria',
      content: Buffer.from(draft.odd('criteria', 0.3) ? pick(random, ODD_TEXTS) : 'plan'),
    });
  return parts;
}

function importParts(draft: Draft): Part[] {
  const { random } = draft;
  return Array.from({ length: 1 + random.below(2) }, (_, n) => {
    const type = pick(random, ['text/csv', 'application/x-ndjson', 'application/fhir+ndjson', 'application/fhir+json']);
    const part = type.includes('fhir') ? 'fhir' : n === 0 ? 'providers' : 'clients';
    return {
      name: draft.odd('part', 0.1) ? inHeader(pick(random, ODD_TEXTS)) : part,
      file: draft.odd('file name', 0.1) ? inHeader(pick(random, ODD_TEXTS)) : 'people.csv',
      type,
      content: importFile(draft, type),
    };
  });
}

/** A small file of people, sometimes with an odd cell, or truncated. */
export function importFile(draft: Draft, type: string): Buffer {
  const { random } = draft;
  const people = Array.from({ length: 1 + random.below(4) }, () => PEOPLE - 2 + random.below(6));
  const cell = (text: string) => (draft.odd('cell', 0.05) ? pick(random, ODD_TEXTS).slice(0, 3_000) : text);
  const person = (n: number) => ({
    externalId: cell(`c-${n}`),
    email: cell(`${PERSON_WORD}${n}@clinic.example`),
    firstName: cell(`${PERSON_WORD}${n}`),
    lastName: cell(PERSON_WORD),
    providers: [cell(`p-${n % 4}`)],
  });
  const text = () => {
    if (type === 'text/csv') {
      const lines = people.map((n) => Object.values(person(n)).flat().join(','));
      return `externalId,email,firstName,lastName,providers\n${lines.join('\n')}`;
    }
    if (type === 'application/x-ndjson') return people.map((n) => JSON.stringify(person(n))).join('\n');
    const resources = people.map((n) => patient(person(n)));
    if (type === 'application/fhir+ndjson') return resources.map((resource) => JSON.stringify(resource)).join('\n');
    return JSON.stringify({
      resourceType: 'Bundle',
      type: 'collection',
      entry: resources.map((resource) => ({ resource })),
    });
  };
  const file = Buffer.from(text());
  return draft.odd('broken file', 0.05) ? file.subarray(0, random.below(file.length)) : file;
}

function patient({ externalId, email, firstName, lastName, providers }: Record<string, string | string[]>): object {
  return {
    resourceType: 'Patient',
    id: externalId,
    name: [{ family: lastName, given: [firstName] }],
    telecom: [{ system: 'email', value: email }],
    generalPractitioner: [{ reference: `Practitioner/${providers}` }],
  };
}
