import fc from 'fast-check';
import { propertyRuns } from '../config/property-runs.spec-support.js';
import { RecorderToken } from '../platform/clients/platform-client.js';
import { recorderUrl, recoveryUrl, redirectFault } from './recorder-url.js';

const anyText = fc.string({ unit: 'grapheme', minLength: 1 });
const query = (url: string) => Object.fromEntries(new URL(url).searchParams);

it('the recorder is opened with variant, contractId, sessionToken and redirectUrl', () => {
  const url = recorderUrl('https://rec.example', {
    variant: 'in-person',
    contractId: '8f3c',
    sessionToken: new RecorderToken('t o+k/e=n&x'),
    redirectUrl: 'https://ehr.example/back?a=1&b=ü#top',
  });
  expect(url).toBe(
    'https://rec.example/recorder?variant=in-person&contractId=8f3c&sessionToken=t%20o%2Bk%2Fe%3Dn%26x' +
      '&redirectUrl=https%3A%2F%2Fehr.example%2Fback%3Fa%3D1%26b%3D%C3%BC%23top',
  );
});

it('redirectUrl is left out when there is none', () => {
  const launch = { variant: 'virtual', contractId: 'c', sessionToken: new RecorderToken('t') } as const;
  expect(query(recorderUrl('https://rec.example', launch))).toEqual({
    variant: 'virtual',
    contractId: 'c',
    sessionToken: 't',
  });
});

it('unfinished uploads are found with the sessionToken alone', () => {
  expect(recoveryUrl('https://rec.example/', new RecorderToken('a b'))).toBe(
    'https://rec.example/unuploaded-sessions?sessionToken=a%20b',
  );
});

it('the path of the partner domain is kept', () => {
  expect(recoveryUrl('https://rec.example/app/', new RecorderToken('t'))).toBe(
    'https://rec.example/app/unuploaded-sessions?sessionToken=t',
  );
});

it('whatever a value holds, the recorder reads exactly that', () => {
  fc.assert(
    fc.property(anyText, anyText, fc.webUrl({ withQueryParameters: true, withFragments: true }), (id, token, back) => {
      const url = recorderUrl('https://rec.example', {
        variant: 'virtual',
        contractId: id,
        sessionToken: new RecorderToken(token),
        redirectUrl: back,
      });
      expect(query(url)).toEqual({ variant: 'virtual', contractId: id, sessionToken: token, redirectUrl: back });
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
])('%s may be led back to', (url) => {
  expect(redirectFault(url, allowed)).toBeUndefined();
});

it.each([
  ['another host', 'https://evil.example/'],
  ['another scheme', 'http://ehr.example/'],
  ['another port', 'https://ehr.example:444/'],
  ['a host that only begins alike', 'https://ehr.example.evil.example/'],
  ['a host that only ends alike', 'https://notehr.example/'],
  ['a listed host as user name', 'https://ehr.example@evil.example/'],
  ['a user name at a listed host', 'https://me@ehr.example/'],
  ['a path alone', '/back'],
  ['no scheme', '//ehr.example/back'],
  ['a script', 'javascript:alert(1)'],
  ['a document in itself', 'data:text/html,hello'],
  ['a backslash', 'https://ehr.example\\@evil.example/'],
  ['a line break', 'https://ehr.example/\n'],
  ['half a character', 'https://ehr.example/\ud800'],
  ['nothing', ''],
])('%s is refused', (_what, url) => {
  expect(redirectFault(url, allowed)).toEqual(expect.any(String));
});

it('without a list nothing may be led back to', () => {
  expect(redirectFault('https://ehr.example/', [])).toMatch('REDIRECT_ALLOWED_ORIGINS');
});
