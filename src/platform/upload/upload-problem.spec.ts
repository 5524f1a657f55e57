import { PlatformError, type PlatformErrorKind } from '../contract/platform-errors.js';
import { UploadSourceError, uploadProblem } from './upload-stream.js';

it.each<[PlatformErrorKind, number, string]>([
  ['rejected', 502, 'upload-refused'],
  ['unreachable', 502, 'upload-failed'],
  ['unknown-outcome', 502, 'upload-failed'],
  ['rate-limited', 503, 'platform-rate-limited'],
])('a store error %s becomes %i %s', (kind, status, type) => {
  expect(uploadProblem(new PlatformError(kind, 'upload'))).toMatchObject({ status, type });
});

it('a source that ended early becomes 499, not an error of the store', () => {
  expect(uploadProblem(new UploadSourceError())).toMatchObject({
    status: 499,
    type: 'upload-broken-off',
  });
});

it('an error while requesting the upload URL is one of the platform', () => {
  const error = new PlatformError('unauthorized', 'recordingUploadUrl');
  expect(uploadProblem(error)).toMatchObject({ status: 503, type: 'platform-unauthorized' });
});
