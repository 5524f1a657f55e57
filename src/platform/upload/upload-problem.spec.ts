import { PlatformError, type PlatformErrorKind } from '../contract/platform-errors.js';
import { UploadSourceError, uploadProblem } from './upload-stream.js';

it.each<[PlatformErrorKind, number, string]>([
  ['rejected', 502, 'upload-refused'],
  ['unreachable', 502, 'upload-failed'],
  ['unknown-outcome', 502, 'upload-failed'],
  ['rate-limited', 503, 'platform-rate-limited'],
])('a store that is %s is answered %i %s', (kind, status, type) => {
  expect(uploadProblem(new PlatformError(kind, 'upload'), 'the recording')).toMatchObject({ status, type });
});

it('a sender that broke off is told so with 499, not with a fault of the store', () => {
  expect(uploadProblem(new UploadSourceError(), 'the recording')).toMatchObject({
    status: 499,
    type: 'upload-broken-off',
  });
});

it('a failure to get the upload address is the platform’s', () => {
  const error = new PlatformError('unauthorized', 'recordingUploadUrl');
  expect(uploadProblem(error, 'the recording')).toMatchObject({ status: 503, type: 'platform-unauthorized' });
});
