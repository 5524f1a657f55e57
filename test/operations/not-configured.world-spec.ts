import { contractFile } from '../support/contract-file.js';
import { useWorld } from '../world/use-world.js';

const UPLOAD = ['response.uploadUrl', 'response.fileUrl'];
const world = useWorld();

test('routes answer 501 and name what the contract and the settings lack', async () => {
  const operations = ['recordingUploadUrl', 'submitComplianceJob', 'complianceUploadUrl'];
  await world.restart({ PLATFORM_CONTRACT: contractFile(operations) });
  const launch = { provider: 'p-1', client: 'c-1', variant: 'virtual' };
  const recording = { body: Buffer.from('sound'), headers: { 'content-type': 'audio/wav' } };
  const recordings = ['method', 'path', ...UPLOAD].map((name) => `operations.recordingUploadUrl.${name}`);
  const submissions = ['method', 'path'].map((name) => `operations.submitComplianceJob.${name}`);
  const files = [...UPLOAD, 'upload.method'].map((name) => `operations.complianceUploadUrl.${name}`);
  for (const [path, options, missing] of [
    ['recordings', recording, recordings],
    ['recordings/upload-url', { body: {} }, recordings],
    ['compliance/jobs', { body: { files: [{ id: 'a', url: 'x' }] } }, submissions],
    ['compliance/upload-url', { body: {} }, files],
    ['recorder/launches', { body: launch }, undefined],
    ['recorder/recoveries', { body: { provider: 'p-1' } }, undefined],
  ] as const) {
    const { status, body } = await world.call<{ type: string; missing: string[] }>('POST', `/v1/${path}`, options);
    expect([path, status, body.type]).toEqual([path, 501, 'urn:notebridge:problem:not-configured']);
    expect(body.missing).toEqual(missing?.map((name) => `PLATFORM_CONTRACT: ${name}`) ?? ['PLATFORM_PARTNER_DOMAIN']);
  }
});
