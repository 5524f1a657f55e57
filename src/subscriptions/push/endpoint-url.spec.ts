import { checkEndpointUrl } from './endpoint-url.js';

const here = { SUBSCRIPTION_HOSTS_ALLOWED: [], isPlatformHere: true };
const away = { SUBSCRIPTION_HOSTS_ALLOWED: ['EHR.internal', '10.1.2.3', '127.0.0.1'], isPlatformHere: false };
const PUBLIC = 'must name a public host, or one that SUBSCRIPTION_HOSTS_ALLOWED names';

test.each([
  ['https://ehr.example.org/hook?tenant=7', away],
  ['https://ehr.internal:8443/hook', away],
  ['https://10.1.2.3/hook', away],
  ['http://127.0.0.1:3000/hook', away],
  ['http://127.0.0.1:3000/hook', here],
  ['http://localhost:3000/hook', here],
  ['http://[::1]:3000/hook', here],
])('%s is an endpoint', (url, settings) => {
  expect(checkEndpointUrl(url, settings)).toBeUndefined();
});

test.each([
  ['http://ehr.example.org/hook', here, 'must begin with https://'],
  ['http://ehr.internal/hook', away, 'must begin with https://'],
  ['http://10.1.2.3/hook', away, 'must begin with https://'],
  ['https://10.1.2.4/hook', away, PUBLIC],
  ['https://10.1.2.4/hook', here, PUBLIC],
  ['https://localhost/hook', away, PUBLIC],
  ['https://169.254.169.254/latest', here, PUBLIC],
  ['https://other.internal/hook', away, PUBLIC],
  ['https://user:word@ehr.example.org/', away, 'must hold no user name or password'],
  ['ehr.example.org/hook', away, 'must be a complete address such as https://host/path'],
  ['ftp://ehr.example.org/', away, 'must begin with https://'],
])('%s is none', (url, settings, fault) => {
  expect(checkEndpointUrl(url, settings)).toBe(fault);
});
