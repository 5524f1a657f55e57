import { PageResponse } from '../../http/request/page.js';
import type { CapabilityName } from '../../platform/contract/capabilities.js';

export class CapabilityResponse {
  name!: CapabilityName;
  on!: boolean;
  /** Settings that it needs */
  missing!: string[];
  /** What to change if the platform answers 404; only for an operation whose path the specification writes in two ways */
  hint!: string | null;
}

export class CapabilityPageResponse extends PageResponse {
  items!: CapabilityResponse[];
}
