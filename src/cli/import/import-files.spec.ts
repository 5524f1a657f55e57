import { kindOf } from './import-files.js';

const HEADER = 'externalId,email,firstName,lastName';

test.each([
  ['providers.csv', HEADER, 'providers'],
  ['clients.csv', HEADER, 'clients'],
  ['patients-2026.csv', 'MRN;Name', 'clients'],
  ['export.csv', `${HEADER},providers`, 'clients'],
  ['patients_by_provider.csv', `${HEADER},providers`, 'clients'],
  ['patients_by_provider.csv', 'Patient ID,First name,Last name', 'clients'],
  ['export.csv', 'ID;First name;Last name;Therapist', 'clients'],
  ['export.csv', `Patients of the clinic\n\nMRN;First name;Last name;Therapist`, 'clients'],
  ['export.csv', 'Therapist ID,First name,Last name,Email', 'providers'],
  ['export.csv', 'NPI,ID,First name,Last name,Email', 'providers'],
  ['rejected.csv', `kind,${HEADER},providers,line,code,hint,check`, 'fhir'],
  ['providers-rejected.csv', `kind,${HEADER},providers,line,code,hint,check`, 'fhir'],
  ['Practitioner.ndjson', '{"resourceType":"Practitioner"}', 'fhir'],
  ['bundle.json', '{', 'fhir'],
  ['export.jsonl', '{"externalId":"c1","providers":["p1"]}', 'clients'],
  ['clinicians.jsonl', '{"externalId":"p1"}', 'providers'],
] as const)('%s beginning with %s holds %s', (name, beginning, kind) =>
  expect(kindOf(name, beginning)).toEqual({ kind }),
);

test.each([
  ['export.csv', HEADER],
  ['patients_by_provider.csv', HEADER],
  ['export.jsonl', '{"externalId":"x"}'],
] as const)('whom %s beginning with %s holds is not clear', (name, beginning) =>
  expect(kindOf(name, beginning)).toEqual({}),
);

test.each([
  ['providers.csv', `${HEADER},providers`, { name: 'providers', header: 'clients' }],
  ['patients.csv', 'NPI,ID,First name,Last name,Email', { name: 'clients', header: 'providers' }],
] as const)('%s beginning with %s says two things', (name, beginning, contradiction) =>
  expect(kindOf(name, beginning)).toEqual({ contradiction }),
);
