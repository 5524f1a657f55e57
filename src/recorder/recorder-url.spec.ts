import fc from 'fast-check';
import { propertyRuns } from '../config/property-runs.spec-support.js';
import { recorderUrl, redirectFault } from './recorder-url.js';

const anyText = fc.string({ unit: 'grapheme', minLength: 1 });
const query = (url: string) => Object.fromEntries(new URL(url).searchParams);

it('opens the recorder with variant, contractId, redirectUrl and sessionToken', () => {
  const url = recorderUrl('https://rec.example', 'recorder', 't o+k/e=n&x', {
    variant: 'in-person',
    contractId: '8f3c',
    redirectUrl: 'https://ehr.example/back?a=1&b=ü#top',
  });
  expect(url).toBe(
    'https://rec.example/recorder?variant=in-person&contractId=8f3c' +
      '&redirectUrl=https%3A%2F%2Fehr.example%2Fback%3Fa%3D1%26b%3D%C3%BC%23top&sessionToken=t%20o%2Bk%2Fe%3Dn%26x',
  );
});

it('leaves out an undefined redirectUrl', () => {
  const launch = { variant: 'virtual', contractId: 'c', redirectUrl: undefined };
  expect(query(recorderUrl('https://rec.example', 'recorder', 't', launch))).toEqual({
    variant: 'virtual',
    contractId: 'c',
    sessionToken: 't',
  });
});

it('opens unfinished uploads with the sessionToken only, below the path of the partner domain', () => {
  expect(recorderUrl('https://rec.example/app/', 'unuploaded-sessions', 'a b')).toBe(
    'https://rec.example/app/unuploaded-sessions?sessionToken=a%20b',
  );
});

it('encodes every value so that the recorder reads it unchanged', () => {
  fc.assert(
    fc.property(anyText, anyText, fc.webUrl({ withQueryParameters: true, withFragments: true }), (id, token, back) => {
      const launch = { variant: 'virtual', contractId: id, redirectUrl: back };
      const url = recorderUrl('https://rec.example', 'recorder', token, launch);
      expect(query(url)).toEqual({ ...launch, sessionToken: token });
      expect(new URL(url).hash).toBe('');
    }),
    propertyRuns(),
  );
});

const allowed = ['https://ehr.example', 'https://ehr.example:8443/app', 'http://ehr.hospital.internal'];

it.each([
  'https://ehr.example',
  'https://ehr.example/back?visit=7#top',
  'https://EHR.example:443/back',
  'https://ehr.example:8443/anywhere',
  'http://ehr.hospital.internal/back',
])('accepts the redirectUrl %s', (url) => {
  expect(redirectFault(url, allowed)).toBeUndefined();
});

it.each([
  ['another host', 'https://evil.example/'],
  ['another scheme', 'http://ehr.example/'],
  ['another port', 'https://ehr.example:444/'],
  ['a host with the same beginning', 'https://ehr.example.evil.example/'],
  ['a host with the same end', 'https://notehr.example/'],
  ['a listed host as user name', 'https://ehr.example@evil.example/'],
  ['a user name at a listed host', 'https://me@ehr.example/'],
  ['only a path', '/back'],
  ['no scheme', '//ehr.example/back'],
  ['a script', 'javascript:alert(1)'],
  ['an embedded document', 'data:text/html,hello'],
  ['a backslash', 'https://ehr.example\\@evil.example/'],
  ['a line break', 'https://ehr.example/\n'],
  ['half a character', 'https://ehr.example/\ud800'],
  ['nothing', ''],
])('rejects a redirectUrl with %s', (_what, url) => {
  expect(redirectFault(url, allowed)).toEqual(expect.any(String));
});

it('rejects every redirectUrl without a list', () => {
  expect(redirectFault('https://ehr.example/', [])).toMatch('REDIRECT_ALLOWED_ORIGINS');
});
