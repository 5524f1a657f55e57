import { recognise } from '../../../console/pages/imports/recognise.js';
import { kindOf } from './import-files.js';

const HEADERS = [
  'externalId,email,firstName,lastName',
  'externalId,email,firstName,lastName,providers',
  'MRN;First name;Last name;E-mail',
  'Patient ID\tGiven name\tSurname\tTherapist ID',
  'Therapist ID,First,Last,Email',
  'NPI,id,first,last,email',
  'kind,externalId,email,firstName,lastName,providers,line,code,hint,check',
  'sep=;\nMonthly export\nClient number;First;Last;Date of birth',
  'id,name,name,name',
  '{"resourceType":"Patient"}',
  '{"externalId":"C-1","providers": []}',
  '{"externalId":"P-1"}',
  '',
];
const NAMES = ['export.csv', 'providers.csv', 'patients.csv', 'bundle.json', 'patients_by_provider.ndjson'];

test('a browser recognises files as the command line does', () => {
  for (const name of NAMES)
    for (const header of HEADERS)
      expect({ name, header, kind: recognise(name, header).kind }).toEqual({
        name,
        header,
        kind: kindOf(name, header).kind,
      });
});
