import { COMPLIANCE_CRITERIA } from '../platform/contract/wire-types.js';
import { jobBody } from './compliance.dto.js';

const files = [{ id: 'visit-17', url: 'https://store.example/1' }];
const fault = async (body: unknown) => {
  const problem = await jobBody(body).catch((error: unknown) => error);
  const { status, type, more } = problem as { status: number; type: string; more: { pointer: string } };
  return [status, type, more.pointer];
};

it('accepts files without criteria, and every criterion and group of the spec', async () => {
  expect(await jobBody({ files })).toEqual({ files });
  const whole = { files, criteria: [...COMPLIANCE_CRITERIA], criteriaGroups: ['therapy_notes'] };
  expect(await jobBody(whole)).toEqual(whole);
});

it('accepts null and empty lists and does not send them', async () => {
  expect(await jobBody({ files, criteria: null, criteriaGroups: [] })).toEqual({ files });
});

it.each([
  ['files is required', {}, '/files'],
  ['files is a list', { files: files[0] }, '/files'],
  ['files is not empty', { files: [] }, '/files'],
  ['a file is an object', { files: ['https://store.example/1'] }, '/files/0'],
  ['a file has an id', { files: [{ url: 'https://store.example/1' }] }, '/files/0/id'],
  ['an id is a string', { files: [{ id: 17, url: 'https://store.example/1' }] }, '/files/0/id'],
  ['an id is not empty', { files: [{ id: '', url: 'https://store.example/1' }] }, '/files/0/id'],
  ['a file has a url', { files: [{ id: 'visit-17' }] }, '/files/0/url'],
  ['a url is a string', { files: [...files, { id: 'b', url: 7 }] }, '/files/1/url'],
  ['criteria is a list', { files, criteria: 'plan' }, '/criteria'],
  ['criteria are on the list', { files, criteria: ['plan', 'handwriting'] }, '/criteria'],
  ['criteriaGroups is a list', { files, criteriaGroups: 'therapy_notes' }, '/criteriaGroups'],
  ['criteriaGroups are on the list', { files, criteriaGroups: ['all'] }, '/criteriaGroups'],
  ['unknown fields are rejected', { files, patient: 'x' }, '/patient'],
])('400: %s', async (_rule, body, pointer) => {
  expect(await fault(body)).toEqual([400, 'validation', pointer]);
});

it.each([[[files]], ['files'], [7], [null], [undefined]])(
  '400: a body of %j is not an object with files',
  async (body) => {
    expect((await fault(body)).slice(0, 2)).toEqual([400, 'validation']);
  },
);
