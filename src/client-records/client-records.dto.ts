import { PageResponse } from '../http/request/page.js';

/**
 * Data of a client sent to the platform, or a request about the client. Repeats by the same recipient, with the same
 * outcome and purpose, are one disclosure (45 CFR 164.528(b)(3)).
 */
export class DisclosureResponse {
  /** The time, or the last time of repeats */
  at!: Date;
  /** The first time within the retention period */
  firstAt!: Date;
  /** The number of repeats, at least 1 */
  count!: number;
  /** `platform`, or `ehr` for the owner of an API key */
  recipient!: 'platform' | 'ehr';
  /**
   * The operation of the platform, or the request to this service
   *
   * @example createClient
   */
  action!: string;
  /** The outcome; `sent` for a session update without a failure */
  outcome!: string;
  /** Internal ids of the sessions */
  sessions!: string[];
  keyId!: string | null;
  keyName!: string | null;
  /** The end user that the EHR named */
  onBehalfOf!: string | null;
  purpose!: string | null;
}

export class DisclosurePageResponse extends PageResponse {
  items!: DisclosureResponse[];
}
