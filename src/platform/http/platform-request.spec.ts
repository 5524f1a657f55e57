import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { contractOf, FULL_CONTRACT } from '../clients/loopback-platform.spec-support.js';
import { Contract } from '../contract/contract.js';
import type { OperationName } from '../contract/operations.js';
import { platformRequest } from './platform-http.js';

const platform = { PLATFORM_BASE_URL: 'https://platform.example/tenant/7', PLATFORM_API_KEY: 'k' };
const full = contractOf(FULL_CONTRACT);
const build = (operation: OperationName, parameters: Record<string, string | number> = {}, contract = full) =>
  platformRequest(contract, platform, { operation, parameters });

describe('a request to the platform', () => {
  it('keeps the path of the base URL', () => {
    expect(build('updateSession', { sessionId: 's1' }).url).toBe(
      'https://platform.example/tenant/7/api/v2/therapy-session/s1',
    );
  });

  it('has the API key in the header of the contract, without a scheme if there is none', () => {
    const withScheme = contractOf({ apiKey: { header: 'Authorization', scheme: 'Key' } });
    expect(build('checkUser').headers).toMatchObject({ 'x-partner-key': 'k' });
    expect(build('checkUser', {}, withScheme).headers).toMatchObject({ authorization: 'Key k' });
  });

  it('has the API key as a Bearer token for initiate-auth, regardless of the contract', () => {
    expect(build('initiateAuth').headers).toEqual({ accept: 'application/json', authorization: 'Bearer k' });
    expect(build('initiateAuth', {}, Contract.of({})).headers).toHaveProperty('authorization', 'Bearer k');
  });

  it('fails if the contract lacks a setting', () => {
    expect(() => build('checkUser', {}, Contract.of({}))).toThrow(
      'checkUser needs apiKey.header in PLATFORM_CONTRACT.',
    );
    expect(() => build('getSession', { sessionId: 's' }, contractOf({ apiKey: { header: 'K' } }))).toThrow(
      'getSession needs operations.getSession.method, operations.getSession.path in PLATFORM_CONTRACT.',
    );
  });

  it('describes a file as the contract defines, with its size as a number', () => {
    const file = { fileName: 'ü b.webm', contentType: 'audio/webm', size: 12 };
    expect(JSON.parse(build('recordingUploadUrl', file).data ?? '')).toEqual({
      name: 'ü b.webm',
      type: 'audio/webm',
      bytes: 12,
    });
    expect(build('complianceUploadUrl', file).url).toMatch(/\/compliance\/upload-url\?name=%C3%BC%20b\.webm$/);
  });

  it('keeps any parameter within one segment of the path', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (userId) => {
        const made = () => new URL(build('deleteUser', { userId }).url);
        if (/^\.{0,2}$/.test(userId)) return expect(made).toThrow('userId is empty or dots, nothing was sent');
        const { pathname, search, hash, host } = made();
        const segments = pathname.split('/');
        expect([host, search, hash, segments.length]).toEqual(['platform.example', '', '', 5]);
        expect(decodeURIComponent(segments[4] ?? '')).toBe(userId.replace(/\p{Surrogate}/gu, '\uFFFD'));
      }),
      propertyRuns(),
    );
  });

  it('keeps any file name within its header', () => {
    const contract = contractOf({
      apiKey: { header: 'K' },
      operations: {
        complianceUploadUrl: {
          headers: { 'X-Name': '{fileName}' },
          response: { uploadUrl: '', fileUrl: '' },
          upload: { method: 'PUT' },
        },
      },
    });
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (fileName) => {
        expect(build('complianceUploadUrl', { fileName }, contract).headers['x-name']).toMatch(/^[\x20-\x7e]*$/);
      }),
      propertyRuns(),
    );
  });
});
