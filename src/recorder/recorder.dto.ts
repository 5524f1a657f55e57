import { OneOf, OptionalText } from '../http/request/fields.js';
import { IsExternalId } from '../people/api/people.dto.js';
import { RECORDER_VARIANTS, type RecorderVariant } from '../platform/contract/wire-types.js';

/** Characters; longer addresses break in browsers. */
const REDIRECT_MAX = 2_000;

/** `POST /v1/recorder/recoveries` */
export class RecoveryRequest {
  /** @example p-1 */
  @IsExternalId()
  provider!: string;
}

/** `POST /v1/recorder/launches` (spec, Audio recorder web routes). */
export class LaunchRequest extends RecoveryRequest {
  /** @example c-1 */
  @IsExternalId()
  client!: string;

  @OneOf(RECORDER_VARIANTS)
  variant!: RecorderVariant;

  /** Complete, with an origin that REDIRECT_ALLOWED_ORIGINS lists */
  @OptionalText(REDIRECT_MAX)
  redirectUrl?: string;
}

/** Opens the recorder once. The URL contains a secret, so do not store it. */
export class RecorderResponse {
  url!: string;
}
