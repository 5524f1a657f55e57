import { Problem } from '../../http/problem/problem.js';
import { detectFile, type FileFacts } from './detect-file.js';

const detect = (content: string | Buffer, facts: Partial<Omit<FileFacts, 'beginning'>> = {}) => {
  const { format, kind } = detectFile({ name: 'export', mediaType: '', ...facts, beginning: Buffer.from(content) });
  return `${format} ${kind}`;
};

const fault = (...args: Parameters<typeof detect>) => {
  try {
    return detect(...args);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return `${error.type}: ${error.detail}`;
  }
};

const CLIENTS = 'Patient ID,First Name,Last Name,Therapist\n1,Ann,Ash,P\n';
const PROVIDERS = 'Provider ID,First Name,Last Name,NPI\n1,Ann,Ash,7\n';
const UNCLEAR = 'id,first,last,email\n1,Ann,Ash,\n';
const BOTH = 'kind,externalId,firstName,lastName\nclient,1,Ann,Ash\n';
const REJECTED = 'kind,externalId,email,firstName,lastName,providers,platformUserId,file,line,code,hint\n';
const PATIENT = '{"resourceType":"Patient","id":"1"}\n';
const PERSON = '{"externalId":"1","firstName":"Ann","lastName":"Ash"}\n';

describe('the format of a file', () => {
  it.each([
    ['media type', PERSON, { mediaType: 'text/csv', name: 'clients' }, 'csv clients'],
    ['extension', 'NR\n1\n', { name: 'clients.csv' }, 'csv clients'],
    ['extension .tsv', CLIENTS.replaceAll(',', '\t'), { name: 'x.tsv' }, 'csv clients'],
    ['content: CSV', CLIENTS, {}, 'csv clients'],
    ['content: CSV in UTF-16', Buffer.from(`\ufeff${CLIENTS}`, 'utf16le'), {}, 'csv clients'],
    ['content: JSON lines', PERSON, { name: 'clients' }, 'ndjson clients'],
    ['content: resources', PATIENT, {}, 'fhir-ndjson fhir'],
    ['content: a resource longer than the beginning', PATIENT.slice(0, 30), {}, 'fhir-ndjson fhir'],
    ['content: a Bundle', '{\n "resourceType": "Bundle",\n "entry": [', {}, 'fhir-json fhir'],
    [
      'content: a Bundle that begins with entries',
      '{"entry": [{"resource": {"resourceType": "Patient"',
      {},
      'fhir-json fhir',
    ],
    ['content: one resource on several lines', '{\n "resourceType": "Patient"\n}', {}, 'fhir-json fhir'],
    ['resources in JSON lines', PATIENT, { mediaType: 'application/x-ndjson' }, 'fhir-ndjson fhir'],
    ['resources in a .json file', PATIENT, { name: 'x.json' }, 'fhir-ndjson fhir'],
    ['media type of FHIR', PERSON, { mediaType: 'application/fhir+ndjson' }, 'fhir-ndjson fhir'],
  ])('follows from %s', (_, content, facts, expected) => {
    expect(detect(content, facts)).toBe(expected);
  });

  it.each([
    ['a workbook', 'PK\u0003\u0004 [Content_Types].xml', 'This is an Excel workbook (.xlsx). Save it as CSV UTF-8'],
    ['a picture', '\u0089PNG\r\n\0\0,', 'The format of the file is not known. Known formats: CSV'],
    ['a web page', '<html lang="en,de">', 'The format of the file is not known.'],
    ['nothing', '', 'The format of the file is not known.'],
  ])('is unknown for %s', (_, content, detail) => {
    expect(fault(content, { name: 'x' })).toContain(`unknown-format: ${detail}`);
  });
});

describe('the kind of a file', () => {
  it.each([
    [
      'the choice of the user, against its name and columns',
      PROVIDERS,
      { wanted: 'clients', name: 'providers.csv' },
      'csv clients',
    ],
    ['the name of its part, against the choice', UNCLEAR, { wanted: 'clients', field: 'providers' }, 'csv providers'],
    ['the name of its part', UNCLEAR, { field: 'providers' }, 'csv providers'],
    ['the name of its part, against its columns', PROVIDERS, { field: 'clients' }, 'csv clients'],
    ['a column kind', BOTH, { name: 'clients.csv' }, 'csv both'],
    ['a column kind, in a part with a name', BOTH, { field: 'clients' }, 'csv both'],
    ['a column kind, for kind=fhir', BOTH, { wanted: 'fhir' }, 'csv both'],
    ['the columns of rejected rows', REJECTED, {}, 'csv both'],
    ['its columns: clients', CLIENTS, {}, 'csv clients'],
    ['its columns: providers', PROVIDERS, { field: 'file' }, 'csv providers'],
    ['its name', UNCLEAR, { name: 'practitioners.csv' }, 'csv providers'],
    ['the fields of its first record: kind', PERSON.replace('{', '{"kind":"client",'), {}, 'ndjson both'],
    ['the fields of its first record: providers', PERSON.replace('{', '{"providers":[],'), {}, 'ndjson clients'],
    ['its name: JSON lines', PERSON, { name: 'patients.jsonl' }, 'ndjson clients'],
  ] as const)('follows from %s', (_, content, facts, expected) => {
    expect(detect(content, facts)).toBe(expected);
  });

  it.each([
    ['no sign', UNCLEAR, {}, 'unclear-kind: It is not clear whether the file contains providers or clients.'],
    ['a name with both words', UNCLEAR, { name: 'patients_by_provider.csv' }, 'unclear-kind: It is not clear'],
    [
      'a contradiction',
      CLIENTS,
      { name: 'providers.csv' },
      'unclear-kind: The name of the file suggests providers, but its columns suggest clients. Choose the kind',
    ],
    ['resources chosen as clients', PATIENT, { wanted: 'clients' }, 'unclear-kind: The file contains FHIR resources'],
    [
      'resources in a part clients',
      PATIENT,
      { field: 'clients' },
      'wrong-part: The part is named clients, but its file',
    ],
    ['CSV in a part fhir', CLIENTS, { field: 'fhir' }, 'wrong-part: The part is named fhir, but its file is not FHIR.'],
  ] as const)('is unclear with %s', (_, content, facts, expected) => {
    expect(fault(content, facts)).toContain(expected);
  });
});
