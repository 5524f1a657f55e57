import { contractOf, FULL_CONTRACT } from '../clients/loopback-platform.spec-support.js';
import { capabilitiesOf } from './capabilities.js';
import { Contract } from './contract.js';

const missing = (contract: Contract, env = {}) =>
  Object.fromEntries(capabilitiesOf(contract, env).map((capability) => [capability.name, capability.missing]));

describe('capabilities', () => {
  it('are all on with a complete contract', () => {
    const all = capabilitiesOf(contractOf(FULL_CONTRACT), { PLATFORM_PARTNER_DOMAIN: 'https://notes.example' });
    expect(all.filter((capability) => !capability.on || capability.missing.length > 0)).toEqual([]);
  });

  it('list every missing setting without a contract file', () => {
    const route = (operation: string) => [
      'PLATFORM_CONTRACT: apiKey.header',
      `PLATFORM_CONTRACT: operations.${operation}.method`,
      `PLATFORM_CONTRACT: operations.${operation}.path`,
    ];
    const places = (operation: string) =>
      ['uploadUrl', 'fileUrl'].map((name) => `PLATFORM_CONTRACT: operations.${operation}.response.${name}`);
    expect(missing(Contract.of({}))).toEqual({
      'user-mirroring': ['PLATFORM_CONTRACT: apiKey.header'],
      'session-create': route('createSession'),
      'session-read': route('getSession'),
      'processing-session-read': route('getProcessingSession'),
      'session-update': ['PLATFORM_CONTRACT: apiKey.header'],
      'note-templates-update': route('updateSessionTemplates'),
      'recording-upload': [...route('recordingUploadUrl'), ...places('recordingUploadUrl')],
      'compliance-upload': [
        'PLATFORM_CONTRACT: apiKey.header',
        ...places('complianceUploadUrl'),
        'PLATFORM_CONTRACT: operations.complianceUploadUrl.upload.method',
      ],
      'compliance-submit': route('submitComplianceJob'),
      'compliance-result': ['PLATFORM_CONTRACT: apiKey.header'],
      'compliance-polling': [
        'PLATFORM_CONTRACT: apiKey.header',
        'PLATFORM_CONTRACT: operations.getComplianceJob.response.state',
        'PLATFORM_CONTRACT: operations.getComplianceJob.states',
      ],
      recorder: ['PLATFORM_PARTNER_DOMAIN'],
    });
  });

  it('the recorder needs no apiKey, because the spec shows the header of initiate-auth', () => {
    expect(missing(Contract.of({}), { PLATFORM_PARTNER_DOMAIN: 'https://notes.example' }).recorder).toEqual([]);
  });

  it('name the path that updates a session, and how else the spec writes it', () => {
    const hintOf = (contract: Contract) => capabilitiesOf(contract, {}).flatMap(({ hint }) => hint ?? []);
    const [own, other] = ['/api/v2/therapy-session/{sessionId}', '/therapy-session/{sessionId}'];
    const hint = (used: string, ...others: string[]) =>
      `PATCH ${used} is called. The specification also writes ${others.join(' and ')}: if the platform answers 404, set operations.updateSession.path in PLATFORM_CONTRACT.`;
    expect(hintOf(Contract.of({}))).toEqual([hint(own, other)]);
    expect(hintOf(contractOf({ operations: { updateSession: { path: other } } }))).toEqual([hint(other, own)]);
  });
});
