import { kindOf } from './import-files.js';

test.each([
  ['providers.csv', 'externalId,email,firstName,lastName', 'providers'],
  ['clients.csv', 'externalId,email,firstName,lastName', 'clients'],
  ['patients-2026.csv', 'MRN;Name', 'clients'],
  ['export.csv', 'externalId,firstName,lastName,providers', 'clients'],
  ['export.csv', 'ID;First name;Therapist', 'clients'],
  ['Practitioner.ndjson', '{"resourceType":"Practitioner"}', 'fhir'],
  ['bundle.json', '{', 'fhir'],
  ['export.jsonl', '{"externalId":"c1","providers":["p1"]}', 'clients'],
  ['clinicians.jsonl', '{"externalId":"p1"}', 'providers'],
  ['export.csv', 'externalId,email,firstName,lastName', undefined],
  ['export.jsonl', '{"externalId":"x"}', undefined],
] as const)('%s beginning with %s holds %s', (name, firstLine, kind) => expect(kindOf(name, firstLine)).toBe(kind));
