import { Problem } from '../../http/problem/problem.js';
import { PlatformError } from '../contract/platform-errors.js';
import { platformProblem } from '../contract/platform-problem.js';
import { UploadSourceError } from './upload-stream.js';

/**
 * Turns the failure of sending a file to the platform's store into the problem it is answered with. Whatever it says,
 * the file did not arrive and can be sent again.
 *
 * @param error whatever was thrown; other faults come back as they are
 * @param what names the file in a sentence, such as "the recording"
 */
export function uploadProblem(error: unknown, what: string): unknown {
  if (error instanceof UploadSourceError) {
    return new Problem(499, 'upload-broken-off', `The sending of ${what} broke off before its end; send it again.`);
  }
  if (!(error instanceof PlatformError) || error.operation !== 'upload') return platformProblem(error, what);
  switch (error.kind) {
    case 'rejected':
      return new Problem(502, 'upload-refused', `The platform's store refused ${what}; send it again.`);
    case 'unreachable':
    case 'unknown-outcome':
      return new Problem(502, 'upload-failed', `The platform's store did not take ${what} to its end; send it again.`);
    default:
      return platformProblem(error, what);
  }
}
