import { PageResponse } from '../http/request/page.js';

/** Something of a client that went to the platform, or that a key did with it or was shown of it. */
export class DisclosureResponse {
  at!: Date;
  /** `platform`, or `ehr`: whoever has the key */
  recipient!: 'platform' | 'ehr';
  /**
   * The platform's operation, or the request here
   *
   * @example createClient
   */
  action!: string;
  /** What became of it */
  outcome!: string;
  /** Our ids of the sessions that it was about */
  sessions!: string[];
  keyId!: string | null;
  keyName!: string | null;
  /** The EHR's end user, as the EHR named him */
  onBehalfOf!: string | null;
  purpose!: string | null;
}

export class DisclosurePageResponse extends PageResponse {
  items!: DisclosureResponse[];
}
