import { PageResponse } from '../../http/request/page.js';
import type { CapabilityName } from '../../platform/contract/capabilities.js';

export class CapabilityResponse {
  name!: CapabilityName;
  on!: boolean;
  /** Settings that it needs */
  missing!: string[];
}

export class CapabilityPageResponse extends PageResponse {
  items!: CapabilityResponse[];
}
