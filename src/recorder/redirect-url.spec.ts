import { redirectFault } from './redirect-url.js';

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
